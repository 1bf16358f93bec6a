//! What a door remembers of how it made a plan, to draw a status from it.
//!
//! The engine carries it and never looks: nothing is decided by it. It is a value of the door's own type.

use std::{any::Any, fmt, sync::Arc};

/// A value of a door's own type, or nothing.
#[derive(Clone, Default)]
pub struct Notes(Option<Arc<dyn Any + Send + Sync>>);

impl Notes {
    /// These.
    pub fn new(notes: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(notes)))
    }

    /// Them, where they are of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notes" } else { "no Notes" })
    }
}
