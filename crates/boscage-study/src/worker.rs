//! Who runs a trial, and whether they still can.
//!
//! A worker is a process: its machine, its number and the moment it began. Whoever is on the same machine can see at once that
//! it is gone; everybody else waits for the end of its lease. A lease that a person or script holds (`boscage ask`) has no
//! process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::store::Lease;

/// Counts the tokens of this process.
static TOKENS: AtomicU64 = AtomicU64::new(0);

/// Who asks for trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    name: String,
}

impl Worker {
    /// This process.
    pub fn this_process() -> Self {
        let process = std::process::id();
        let began = began(process).unwrap_or_default();
        Self { name: format!("{}/{process}/{began}", machine()) }
    }

    /// Somebody whose process cannot be watched.
    pub fn somebody() -> Self {
        Self { name: host() }
    }

    /// As it is stored.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A lease for this worker.
    pub(crate) fn lease(&self, until: f64, attempt: u32) -> Lease {
        let count = TOKENS.fetch_add(1, Ordering::Relaxed);
        let time =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let token = format!("{}/{}/{time}/{count}", self.name, std::process::id());
        Lease { worker: self.name.clone(), until, attempt, token }
    }
}

impl Lease {
    /// Whether the trial may be given to another worker.
    pub(crate) fn is_over(&self, now: f64) -> bool {
        self.until < now || self.is_dead()
    }

    /// Whether the worker is a process, which keeps its lease going.
    pub(crate) fn is_watched(&self) -> bool {
        self.worker.contains('/')
    }

    /// Whether the worker was a process of this machine that is gone.
    fn is_dead(&self) -> bool {
        let mut parts = self.worker.rsplitn(3, '/');
        let (Some(began_at), Some(process), Some(on)) = (parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let (Ok(process), Ok(began_at)) = (process.parse::<u32>(), began_at.parse::<u64>()) else {
            return false;
        };
        // Without these, processes cannot be told apart for sure.
        if began_at == 0 || began(std::process::id()).is_none() || on != machine() {
            return false;
        }
        began(process) != Some(began_at)
    }
}

/// This machine since it was started, and the processes that can be seen from here: containers have their own.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let processes: String =
        processes.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}+{}+{processes}", host(), boot.trim())
}

fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().replace('/', "-");
    if name.is_empty() { "unknown".to_string() } else { name }
}

/// When a process began, in ticks since the machine was started; none if it is gone, or a zombie.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in parentheses, which may hold anything; the third begins after it.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_is_gone() {
        let now = 1000.0;
        let own = Worker::this_process().lease(now + 1.0, 1);
        assert!(!own.is_over(now) && own.is_over(now + 2.0));
        assert!(own.is_watched());

        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let began = began(child.id()).unwrap();
        let lease = |process: u32, began: u64| Lease {
            worker: format!("{}/{process}/{began}", machine()),
            until: now + 1.0,
            attempt: 1,
            token: String::new(),
        };
        assert!(!lease(child.id(), began).is_over(now));
        // Another process under the same number.
        assert!(lease(child.id(), began + 1).is_over(now));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lease(child.id(), began).is_over(now));
    }

    #[test]
    fn nobody_elses_processes_are_judged() {
        let lease = |worker: &str| Lease {
            worker: worker.to_string(),
            until: 10.0,
            attempt: 1,
            token: String::new(),
        };
        for worker in ["elsewhere+boot+1/1/1", "somebody", "", "a/b/c", "///"] {
            assert!(!lease(worker).is_over(5.0), "{worker}");
            assert!(lease(worker).is_over(15.0), "{worker}");
        }
        assert!(!Worker::somebody().lease(10.0, 1).is_watched());
    }

    #[test]
    fn tokens_differ() {
        let worker = Worker::this_process();
        assert_ne!(worker.lease(0.0, 1).token, worker.lease(0.0, 1).token);
    }
}
