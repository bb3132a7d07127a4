#[test] fn show() { for n in ["tree","tree-paper"] { for d in boscage_study::describe(n).unwrap() { println!("{} = {}\n    {}", d.path, d.default, d.help); } }
 use boscage::*; use boscage_study::*;
 let p: Program = toml::from_str(r#"command=["/bin/echo","{x}"]"#).unwrap(); let s = Space::new(vec![Parameter::integer("x",0,9)]).unwrap();
 for c in [p.clone(), Program{timeout_seconds:Some(5.0),memory_bytes:Some(1<<30),..p.clone()}] { let t=std::time::Instant::now(); for _ in 0..500 { c.evaluate(&s,&[Value::Integer(3)],std::path::Path::new("/tmp"),Context::default()).unwrap(); } println!("{:?} each", t.elapsed()/500); }
 let t=std::time::Instant::now(); for _ in 0..500 { std::process::Command::new("/bin/echo").arg("3").output().unwrap(); } println!("std {:?} each", t.elapsed()/500);
}
