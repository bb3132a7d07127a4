//! The Python package `boscage`: what its Python part calls.
//!
//! Everything structured goes across as JSON, which the Python part turns into its own types; long lists of numbers go across
//! as bytes, so that NumPy can read them without being needed. Whatever may take long runs in a thread of its own without
//! Python's lock, and Ctrl-C is looked for meanwhile. No panic crosses the border: it becomes an ordinary exception.

mod errors;
mod explanation;
mod optimization;
mod regression;
mod study;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, SendError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use pyo3::prelude::*;

use errors::{Failure, panicked};

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long somebody who waits for a lock sleeps before trying again.
const PAUSE: Duration = Duration::from_millis(1);

/// Something that Python holds and threads work on.
pub(crate) type Shared<T> = Arc<Mutex<T>>;

pub(crate) fn locked<T>(shared: &Shared<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something that may take long: without Python's lock, and so that Ctrl-C ends the waiting.
pub(crate) fn long<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    long_or_undone(py, work, |_| ())
}

/// As [`long`], with something that takes back what was done if nobody waits for it any more.
pub(crate) fn long_or_undone<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    undo: impl FnOnce(&T) + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    // Only so that it may be used without Python's lock.
    let receiver = Mutex::new(receiver);
    let job = move || {
        let done =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&panic)));
        // Nobody listens after Ctrl-C.
        if let Err(SendError(Ok(done))) = sender.send(done) {
            // There is nobody left to be told of a panic either.
            drop(catch_unwind(AssertUnwindSafe(|| undo(&done))));
        }
    };
    std::thread::Builder::new().name("boscage".to_string()).spawn(job).map_err(|error| {
        errors::BoscageError::new_err(format!("no thread could be started: {error}"))
    })?;
    loop {
        match py
            .detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK))
        {
            Ok(done) => return done.map_err(Into::into),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(errors::BoscageError::new_err("the work ended without a result"));
            }
        }
    }
}

/// Does something short with what threads work on: without Python's lock, and so that Ctrl-C ends the waiting for it.
pub(crate) fn short_with<S: Send, T: Send>(
    py: Python<'_>,
    shared: &Shared<S>,
    work: impl FnOnce(&mut S) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let mut work = Some(work);
    loop {
        let done = py.detach(|| {
            let mut held = match shared.try_lock() {
                Ok(held) => held,
                Err(TryLockError::Poisoned(held)) => held.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(PAUSE);
                    return None;
                }
            };
            let work = work.take()?;
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut held)));
            Some(done.unwrap_or_else(|panic| Err(panicked(&panic))))
        });
        match done {
            Some(done) => return done.map_err(Into::into),
            None => py.check_signals()?,
        }
    }
}

/// Does something short: without Python's lock.
pub(crate) fn short<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let done = py.detach(|| {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&panic)))
    });
    done.map_err(Into::into)
}

/// Numbers as bytes.
pub(crate) fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Numbers from bytes.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<f64> {
    let chunks = bytes.chunks_exact(8);
    chunks.map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap_or_default())).collect()
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::errors::{BoscageError, SpaceExhausted, StorageError, StudyChanged};
    #[pymodule_export]
    use super::explanation::Explanation;
    #[pymodule_export]
    use super::optimization::{Optimization, import_space, method_names, method_settings, space};
    #[pymodule_export]
    use super::regression::Regression;
    #[pymodule_export]
    use super::study::{Study, studies};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
