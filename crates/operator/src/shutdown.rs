//! The wish to stop, from a signal or from within, as something that can be awaited anywhere.

use std::io;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// Can make the wish.
pub(crate) struct Stopper(watch::Sender<bool>);

/// Knows of the wish. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

pub(crate) fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns when the process is to stop.
    pub async fn requested(&self) {
        // An error means that the sender is gone, which is a wish too.
        let _ = self.0.clone().wait_for(|stop| *stop).await;
    }
}

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next of them.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
