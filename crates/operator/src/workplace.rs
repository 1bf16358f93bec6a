//! Where things run: the frame on one runtime, the work on another, and what the work itself does on a thread of its own.
//!
//! A turn of the controller is computing, and nothing else makes progress on the thread that computes. So the work's own
//! future has a thread ([`Workplace::start`]); what it spawns (requests, watches, effects) goes to the workers of the
//! work's runtime and carries on meanwhile. The frame's runtime shares no thread with either.

use crate::shutdown::{self, Stop, Stopper};
use std::{
    io,
    num::NonZeroUsize,
    thread::{self, JoinHandle},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};

/// The name of the work's thread, as tools show it.
const THREAD: &str = "controller";

/// The runtime of the frame: one thread, that of its caller. What may take a lock of others is done beside it.
pub(crate) fn frame() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The runtime that the work spawns on.
pub(crate) struct Workplace(Runtime);

impl Workplace {
    pub(crate) fn open() -> io::Result<Self> {
        let workers = thread::available_parallelism().map_or(2, NonZeroUsize::get).clamp(2, 4);
        Builder::new_multi_thread().worker_threads(workers).enable_all().build().map(Self)
    }

    /// Starts the work on a thread of its own.
    pub(crate) fn start<F>(&self, work: impl FnOnce() -> F + Send + 'static) -> io::Result<Working>
    where
        F: Future<Output = Result<(), String>>,
    {
        let runtime = self.0.handle().clone();
        let (done, ended) = oneshot::channel();
        let (cutter, cut) = shutdown::channel();
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            let _ = done.send(runtime.block_on(until_cut_off(cut, work())));
        })?;
        Ok(Working { ended, thread: Some(thread), cutter })
    }

    /// Ends everything that was spawned, waiting for nothing.
    pub(crate) fn close(self) {
        self.0.shutdown_background();
    }
}

async fn until_cut_off(cut: Stop, work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    tokio::select! {
        biased;
        () = cut.requested() => Ok(()),
        ended = work => ended,
    }
}

/// Work that was started.
pub(crate) struct Working {
    ended: oneshot::Receiver<Result<(), String>>,
    thread: Option<JoinHandle<()>>,
    cutter: Stopper,
}

impl Working {
    /// Returns when it has ended, and how. To be asked until then, and not again.
    pub(crate) async fn ended(&mut self) -> Result<(), String> {
        match (&mut self.ended).await {
            Ok(ended) => ended,
            Err(_) => Err(self.panic_message()),
        }
    }

    /// Drops it where it next waits for something. If it never does, it ends with the process; its fence is closed by then.
    pub(crate) fn cut_off(&self) {
        self.cutter.stop();
    }

    /// What a thread that ended without a word said when it panicked.
    fn panic_message(&mut self) -> String {
        let panic = self.thread.take().and_then(|thread| thread.join().err());
        let words = panic.as_ref().and_then(|panic| {
            panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        });
        format!("the controller failed: {}", words.unwrap_or("it ended without a word"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_that_computes_stops_neither_the_frame_nor_what_it_spawned() {
        let workplace = Workplace::open().unwrap();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let mut work = workplace
            .start(move || async move {
                // As many as there may be workers: none of them is on the thread that computes.
                for number in 0..8 {
                    let sender = sender.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        let _ = sender.send(number);
                    });
                }
                let _ = wait.recv();
                Ok(())
            })
            .unwrap();
        frame().unwrap().block_on(async {
            let mut heard = Vec::new();
            while heard.len() < 8 {
                heard.push(receiver.recv().await.unwrap());
            }
            assert!(tokio::time::timeout(Duration::from_millis(10), work.ended()).await.is_err());
            go_on.send(()).unwrap();
            assert_eq!(work.ended().await, Ok(()));
        });
        workplace.close();
    }

    #[test]
    fn work_that_panics_or_is_cut_off_has_ended() {
        let workplace = Workplace::open().unwrap();
        frame().unwrap().block_on(async {
            let mut work = workplace
                .start(|| async {
                    assert!(tokio::runtime::Handle::try_current().is_err(), "on purpose");
                    Ok(())
                })
                .unwrap();
            assert_eq!(work.ended().await, Err("the controller failed: on purpose".to_owned()));
            let mut work = workplace.start(std::future::pending).unwrap();
            work.cut_off();
            assert_eq!(work.ended().await, Ok(()));
        });
    }
}
