//! The durable memory of an object, as its status holds it.
//!
//! In the schema it is a free object, so that an older definition never prunes what a newer operator must remember.

/// What an object's status holds of the journal.
pub type JournalText = serde_json::Value;
