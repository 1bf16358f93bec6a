//! The built-in adapters of consist, each of which speaks to one sort of provider.
//!
//! | adapter | provider |
//! |---|---|
//! | `demo` | any server of the provider contract, with the document's `DemoServiceStatus` and `DemoPodStatus` |
//! | `http` | the same contract for employers and employees of any kind |
//! | `remote` | a program of somebody else's that answers the document's methods over HTTP, in any language |
//! | `haproxy` | HAProxy, through its runtime API |
//! | `alibabacloudslb` | Alibaba Cloud SLB, which is only looked at |
//!
//! What all promise: every answer is bounded in size, depth and time; an answer that is late, cut off, of another status
//! or of another shape is trouble, never an empty list; no credential is in a message; every call may be repeated. Which
//! call is made and what follows from an answer is decided by `linchpin-consist`, none of it here. The process of consist
//! opens adapters through [`open`].

mod alibabacloudslb;
mod client;
mod config;
mod contract;
pub mod demo_provider;
mod haproxy;
mod remote;
mod wire;

pub use self::{
    alibabacloudslb::AlibabaCloudSlb,
    client::{Access, ProviderClient},
    config::{AdapterConfig, AdapterConfigError, NAMES, Opened, open, verify},
    contract::ContractAdapter,
    haproxy::{Address, Haproxy, HaproxyConfig},
    remote::{Description, Remote},
};
