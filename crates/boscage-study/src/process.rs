//! Runs a program with limits, and ends everything that it started.
//!
//! The program is in a process group of its own, so that one signal reaches all its children. A child that leaves the
//! group (`setsid`) is out of reach; it can hold nothing up, because the pipes are given up soon after the program's end.
//!
//! A group of its own also means that Ctrl-C in a terminal does not reach the program. So the groups that are alive are kept
//! in one list of this process, for [`kill_running_programs`].
//!
//! # The guardian
//!
//! A process that is killed (`kill -9`, or the system without memory) can end nothing. So each group is led by a guardian: a
//! shell that reads from a pipe that only this process holds open. When this process is gone, however it went, the guardian
//! reads the end of the pipe and kills its group, itself included.
//!
//! There is no moment without protection: the guardian is there first, and the program enters the guardian's group before its
//! first instruction. If the guardian has killed the group by then, there is no such group, and the program never begins.
//!
//! Signals that ask to end go to the whole group, so the guardian ignores them. Where there is no `/bin/sh`, the program leads
//! its group itself, and outlives a killed process.
//!
//! Cost: three threads a run, and the start of a small shell (about a millisecond); with a limit on CPU time or memory, one
//! look through `/proc` in [`LOOK`].

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How often CPU time and memory are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end after it was asked to, and how long its pipes may stay open after its end.
const GRACE: Duration = Duration::from_secs(2);
/// What the guardian does. Its name and the number of this process come after it, for those who look at the list of processes.
const GUARDIAN: &str = "trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2; read -r _; kill -KILL 0";
/// How much of the end of the standard output is kept.
pub(crate) const OUTPUT_BYTES: usize = 8 << 20;
/// How much of the end of the error output is kept.
const ERROR_BYTES: usize = 64 << 10;

/// What a program and all its children may use together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) wall: Option<Duration>,
    pub(crate) cpu: Option<Duration>,
    pub(crate) memory_bytes: Option<u64>,
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    Wall,
    Cpu,
    Memory,
}

/// The end of what was written to a pipe.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    /// Whether the beginning is missing.
    pub(crate) cut: bool,
}

impl Tail {
    fn push(&mut self, more: &[u8], limit: usize) {
        self.bytes.extend_from_slice(more);
        // Cutting only now and then keeps the cost of a byte constant.
        if self.bytes.len() > 2 * limit {
            self.trim(limit);
        }
    }

    fn trim(&mut self, limit: usize) {
        if self.bytes.len() > limit {
            self.bytes.drain(..self.bytes.len() - limit);
            self.cut = true;
        }
    }

    /// As text; what is not UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Tail,
    pub(crate) stderr: Tail,
    pub(crate) reached: Option<Reached>,
}

/// The groups whose leader is not reaped yet, so that their numbers belong to nobody else; nothing once this process ends.
///
/// It is global because it belongs to the process: whoever ends the process does not know who has started programs.
static RUNNING: Mutex<Option<Vec<Pid>>> = Mutex::new(Some(Vec::new()));

/// Kills every program that is running, with its children. To be called right before the end of this process.
///
/// Whoever waits for one of these programs, or wants to start another one, waits from now on until the process ends: a
/// program killed in this way must not be taken for one that has failed.
pub fn kill_running_programs() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for group in running.take().unwrap_or_default() {
        // It fails only if nobody is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Does something with the list of groups while nobody else does. Never returns after [`kill_running_programs`].
fn with_running<T>(work: impl FnOnce(&mut Vec<Pid>) -> T) -> T {
    if let Some(groups) = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        return work(groups);
    }
    loop {
        thread::park();
    }
}

/// A program and its children. It ends with this value, whatever happens.
struct Group {
    program: Child,
    guardian: Option<Child>,
    /// The number of whoever leads it.
    id: Pid,
    reaped: bool,
}

impl Group {
    /// Starts a program. It is in the list from its first moment on.
    fn start(command: &mut Command) -> io::Result<Self> {
        with_running(|groups| {
            let mut guardian = guardian().ok();
            let leader = guardian.as_ref().map(Pid::from_child);
            match command.process_group(leader.map_or(0, Pid::as_raw_pid)).spawn() {
                Ok(program) => {
                    let id = leader.unwrap_or_else(|| Pid::from_child(&program));
                    groups.push(id);
                    Ok(Self { program, guardian, id, reaped: false })
                }
                Err(error) => {
                    if let Some(guardian) = &mut guardian {
                        let _ = guardian.kill().and_then(|()| guardian.wait());
                    }
                    Err(error)
                }
            }
        })
    }

    fn signal(&self, signal: Signal) {
        // It fails only if nobody is left.
        let _ = kill_process_group(self.id, signal);
    }

    /// Kills whoever is left, and reaps the program and its guardian.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if !self.reaped {
            // Only reaping gives the number away, so it comes last.
            self.signal(Signal::KILL);
            with_running(|groups| groups.retain(|&group| group != self.id));
            self.reaped = true;
            if let Some(guardian) = &mut self.guardian {
                let _ = guardian.wait();
            }
        }
        self.program.wait()
    }

    /// The limit that the group is above of now.
    fn exceeded(&self, limits: Limits) -> Option<Reached> {
        if limits.cpu.is_none() && limits.memory_bytes.is_none() {
            return None;
        }
        let usage = usage(self.id, self.guardian.as_ref().map(Child::id));
        if limits.cpu.is_some_and(|limit| usage.cpu > limit) {
            return Some(Reached::Cpu);
        }
        let memory = limits.memory_bytes.is_some_and(|limit| usage.memory_bytes > limit);
        memory.then_some(Reached::Memory)
    }
}

/// Starts a guardian, which leads a group of its own. It has nothing of the program's: no output, no folder, no environment.
///
/// Programs are started one at a time, so that none gets hold of another guardian's pipe where pipes are closed to children
/// only after they were made.
fn guardian() -> io::Result<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", GUARDIAN, "boscage-guardian", &std::process::id().to_string()]);
    shell.env_clear().current_dir("/").process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Runs the command to its end, or to a limit: then the group is asked to end (TERM), and killed after [`GRACE`].
pub(crate) fn run(command: &mut Command, limits: Limits) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut group = Group::start(command)?;
    let stdout = collect(group.program.stdout.take(), OUTPUT_BYTES)?;
    let stderr = collect(group.program.stderr.take(), ERROR_BYTES)?;
    let ended = watch(Pid::from_child(&group.program))?;

    let mut reached = None;
    let mut deadline = limits.wall.and_then(|wall| begin.checked_add(wall));
    let watched = limits.cpu.is_some() || limits.memory_bytes.is_some();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let pause = if watched && reached.is_none() {
            Some(left.map_or(LOOK, |l| l.min(LOOK)))
        } else {
            left
        };
        let answer = match pause {
            Some(pause) => ended.recv_timeout(pause),
            None => ended.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        if answer != Err(RecvTimeoutError::Timeout) {
            break;
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if reached.is_some() {
            if late {
                group.signal(Signal::KILL);
                deadline = None;
            }
            continue;
        }
        reached = if late { Some(Reached::Wall) } else { group.exceeded(limits) };
        if reached.is_some() {
            group.signal(Signal::TERM);
            deadline = Some(Instant::now() + GRACE);
        }
    }
    let status = group.end()?;
    let give_up = Instant::now() + GRACE;
    Ok(Ended { status, stdout: stdout.finish(give_up), stderr: stderr.finish(give_up), reached })
}

/// Says when a child has ended, without reaping it.
fn watch(child: Pid) -> io::Result<Receiver<()>> {
    let (sender, receiver) = channel();
    thread::Builder::new().name("program end".to_string()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(child), options), Err(Errno::INTR)) {}
        let _ = sender.send(());
    })?;
    Ok(receiver)
}

/// A pipe that is being read.
struct Collector {
    tail: Arc<Mutex<Tail>>,
    limit: usize,
    done: Receiver<()>,
}

/// Reads a pipe to its end in a thread of its own: a program that fills one pipe never waits for the other.
fn collect(pipe: Option<impl Read + Send + 'static>, limit: usize) -> io::Result<Collector> {
    let tail = Arc::new(Mutex::new(Tail::default()));
    let (sender, done) = channel();
    let shared = Arc::clone(&tail);
    thread::Builder::new().name("program output".to_string()).spawn(move || {
        let _sender = sender;
        let Some(mut pipe) = pipe else { return };
        let mut buffer = [0; 16 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    shared
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(&buffer[..count], limit);
                }
            }
        }
    })?;
    Ok(Collector { tail, limit, done })
}

impl Collector {
    /// What was read when the pipe was closed, or at this time if somebody still holds it open.
    fn finish(self, give_up: Instant) -> Tail {
        let _ = self.done.recv_timeout(give_up.saturating_duration_since(Instant::now()));
        let mut tail =
            std::mem::take(&mut *self.tail.lock().unwrap_or_else(PoisonError::into_inner));
        tail.trim(self.limit);
        tail
    }
}

/// What a group uses.
#[derive(Debug, Default)]
struct Usage {
    cpu: Duration,
    memory_bytes: u64,
}

/// Sums over the members of a group, as Linux lists them in `/proc/NUMBER/stat`. A member's CPU time includes that of
/// the children it has waited for. The guardian's share is ours.
fn usage(group: Pid, guardian: Option<u32>) -> Usage {
    let guardian = guardian.map(|number| number.to_string());
    let (mut ticks, mut pages) = (0, 0);
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process =
            entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        if !is_process || guardian.as_ref().is_some_and(|number| entry.file_name() == **number) {
            continue;
        }
        // Processes may end while we look.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        let stat = String::from_utf8_lossy(&stat);
        // The second field is the name in parentheses, which may hold anything; the third begins after it.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let field: Vec<u64> =
            rest.split_ascii_whitespace().map(|f| f.parse().unwrap_or(0)).collect();
        if field.get(2) == Some(&(group.as_raw_pid() as u64)) && field.len() > 21 {
            ticks += field[11..=14].iter().sum::<u64>();
            pages += field[21];
        }
    }
    Usage {
        cpu: Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64),
        memory_bytes: pages * rustix::param::page_size() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_end_of_all_that_was_pushed() {
        for limit in [1, 2, 7, 64] {
            let mut tail = Tail::default();
            let mut whole = Vec::new();
            for (step, length) in [0, 1, 5, 3, 64, 2, 200, 1].into_iter().enumerate() {
                let more: Vec<u8> = (0..length).map(|i| (step * 31 + i) as u8).collect();
                tail.push(&more, limit);
                whole.extend(more);
                assert!(tail.bytes.len() <= 2 * limit);
            }
            tail.trim(limit);
            assert_eq!(tail.bytes, whole[whole.len() - limit..]);
            assert!(tail.cut);
        }
        let mut short = Tail::default();
        short.push(b"abc", 3);
        short.trim(3);
        assert_eq!((short.text().as_str(), short.cut), ("abc", false));
    }
}
