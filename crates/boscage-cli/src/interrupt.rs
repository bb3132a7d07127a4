//! Ctrl-C, and the signals of a system that wants the program to end (TERM) or a terminal that is closed (HUP).
//!
//! External programs are in process groups of their own, so that no such signal reaches them: they are ended here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use boscage_study::kill_running_programs;
use nix::sys::signal::{SigSet, Signal};

/// Where messages are shown.
pub(crate) trait Screen: Send + Sync {
    /// Shows a message without tearing what is there.
    fn say(&self, message: &str);
    /// Takes away whatever is shown.
    fn clear(&self);
}

/// The exit code after an interrupt, as shells count: 128 and the number of the signal.
pub(crate) const STOPPED: u8 = 130;

/// What an interrupt does while trials are running: the first one asks for an end after the trials that are being run, the
/// second one ends everything at once.
#[derive(Default)]
pub(crate) struct Interrupts {
    stop: AtomicBool,
    shown: Mutex<Option<Arc<dyn Screen>>>,
}

impl Interrupts {
    /// Catches interrupts from now on. There can be only one in a process.
    pub(crate) fn catch() -> anyhow::Result<Arc<Self>> {
        let interrupts = Arc::new(Self::default());
        let caught = interrupts.clone();
        on_interrupt(move || {
            let shown = caught.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if caught.stop.swap(true, Ordering::SeqCst) {
                if let Some(screen) = &shown {
                    screen.clear();
                }
                end_at_once();
            }
            if let Some(screen) = &shown {
                screen.say("finishing the trials that are being run; press again to stop at once");
            }
        })?;
        Ok(interrupts)
    }

    /// Where messages are shown from now on.
    pub(crate) fn show_in(&self, screen: Arc<dyn Screen>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(screen);
    }

    /// Set by the first interrupt.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }
}

/// Makes the first interrupt end everything at once, for work that stores nothing.
pub(crate) fn end_at_first_interrupt() -> anyhow::Result<()> {
    on_interrupt(end_at_once)
}

fn end_at_once() {
    kill_running_programs();
    std::process::exit(i32::from(STOPPED));
}

fn on_interrupt(handler: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    // The handler would undo what `nohup` did.
    if hangups_are_ignored() {
        SigSet::from(Signal::SIGHUP).thread_block().context("HUP cannot be blocked")?;
    }
    ctrlc::set_handler(handler).context("Ctrl-C cannot be caught")
}

/// Whether whoever started us wants us to outlive the terminal, as Linux tells it.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // A bit for each signal; HUP is the first.
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}
