//! The rim: everything that talks to an API server.
//!
//! Requests leave through [`transport`], which decides about connections, deadlines and identities and never
//! repeats anything. [`config`] finds out which server and as whom. [`lease`] settles which of several operators
//! may write. The engine sees none of this: only what was observed and what came back.

pub mod config;
pub mod lease;
pub mod transport;
