//! Orders to something that is no API server: a load balancer, a registry, whatever an adapter speaks with.
//!
//! The engine and the driver pass them on and know nothing of what is in them: only the subject that orders and the port
//! that carries out know the type of the [`Payload`], and so nothing is written as text and read again in between.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// A look at, or a call to, something outside, through one of the ports that the process was started with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternalOrder {
    /// The port: the name of an adapter. Orders of one port share its places, whatever makes them.
    pub port: Arc<str>,
    /// What is done, in one word: for logs and metrics.
    pub call: &'static str,
    /// What it is about, in one line: for logs.
    pub about: Arc<str>,
    /// Everything that the port needs for it.
    pub order: Payload,
}

/// A value that only its maker and its reader know. Two are equal only if they are one and the same.
#[derive(Clone)]
pub struct Payload(Arc<dyn Any + Send + Sync>);

impl Payload {
    /// Some value, to be shared.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value; none if it is of another type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Payload {}

impl Hash for Payload {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may hold a secret.
        f.write_str("Payload")
    }
}
