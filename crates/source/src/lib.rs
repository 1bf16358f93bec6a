//! Fetches what a Sync applies: archives, plain YAML and OCI artifacts, from servers that users name.
//!
//! Everything that comes from there is hostile until it has been read: addresses are checked where they are connected
//! to, every body is counted while it is read, digests are compared before anything is unpacked, archives are read in
//! memory and never touch a disk. Nothing of the operator's own identity goes on the wire. What is handed on is text,
//! file by file; what it means is decided elsewhere.

pub mod archive;
pub mod credentials;
pub mod digest;
pub mod fetch;
pub mod flux;
pub mod hosts;
pub mod http;
mod problem;
pub mod registry;
pub mod request;
pub mod tls;
pub mod url;

pub use problem::Problem;
