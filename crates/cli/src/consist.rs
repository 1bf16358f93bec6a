//! `linchpin consist`: adapters as a process of their own.
//!
//! `enable` runs adapters, `disable` takes every mark off again, `list` shows what is served, `demo-provider` is a provider
//! that one can look at.

mod enable;
mod list;

use std::{net::SocketAddr, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};

use crate::{cli::UsageError, operator::block_on};

/// Keep load balancers and other providers consistent with the cluster, by adapters.
#[derive(Debug, Args)]
pub(crate) struct ConsistCommand {
    #[command(subcommand)]
    command: ConsistWord,
}

#[derive(Debug, Subcommand)]
enum ConsistWord {
    Enable(Box<enable::EnableCommand>),
    Disable(Box<enable::DisableCommand>),
    List(list::ListCommand),
    DemoProvider(DemoProviderCommand),
}

/// A small provider for the adapters demo and http: what it is sent it keeps in memory and shows at GET /.
#[derive(Debug, Args)]
struct DemoProviderCommand {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:9900", value_name = "ADDRESS")]
    bind_address: SocketAddr,
}

/// Does it.
pub(crate) fn run(command: ConsistCommand) -> Result<Result<ExitCode, UsageError>> {
    match command.command {
        ConsistWord::Enable(command) => enable::enable(*command),
        ConsistWord::Disable(command) => enable::disable(*command),
        ConsistWord::List(command) => list::run(&command).map(Ok),
        ConsistWord::DemoProvider(command) => demo_provider(&command).map(Ok),
    }
}

fn demo_provider(command: &DemoProviderCommand) -> Result<ExitCode> {
    block_on(async {
        let address = command.bind_address;
        let provider = linchpin_adapters::demo_provider::DemoProvider::bind(address)
            .await
            .with_context(|| format!("listening on {address}; choose another with --bind-address"))?;
        let address = provider.address().context("finding the address")?;
        println!("the demo provider listens on http://{address}/");
        tokio::select! {
            () = provider.serve() => {}
            stopped = tokio::signal::ctrl_c() => stopped.context("waiting for a signal")?,
        }
        Ok(ExitCode::SUCCESS)
    })?
}
