//! The rim: everything that talks to an API server.
//!
//! Requests leave through [`transport`], which decides about connections, deadlines and identities and never
//! repeats anything. [`config`] finds out which server and as whom. [`lease`] settles which of several operators
//! may write. The [`hub`] answers questions about the world, as the [`identity`] that asks, here and in [`remote`]
//! clusters. Orders are carried out by [`apply`], and [`events`] reports to people. The engine sees none of this: only what
//! was observed and what came back.

mod access;
pub mod apply;
mod call;
pub mod config;
mod discovery;
pub mod events;
pub mod hub;
pub mod identity;
pub mod lease;
mod oneself;
pub mod own;
pub mod remote;
mod tenancy;
pub mod transport;
mod watch;

pub use call::Resource;
pub use discovery::{
    index::{KindIndex, WordMeaning},
    served,
};
pub use hub::{ActorClient, AnswerListener, Hub, HubMetrics, HubSettings, NamespaceBudget, SubscriberId};
pub use oneself::owner_in;
