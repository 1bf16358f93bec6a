//! `linchpin rbac --operator`: the operator's own rights, from its one table.

use anyhow::Result;
use clap::Args;
use linchpin_operator::{
    rights::{
        NAMESPACE, helm,
        manifests::{Installation, Tenants},
    },
    settings::{Doors, Namespaces},
};
use serde_json::{Value, json};

use super::Output;
use crate::asked::namespace;

/// Which installation the rights are for.
#[derive(Debug, Args)]
pub(crate) struct InstallationFlags {
    /// With --operator: a namespace that the operator may act for; may be repeated, or separated by commas.
    #[arg(long = "tenant", value_name = "NAMESPACE", requires = "operator", value_delimiter = ',', value_parser = namespace)]
    tenants: Vec<String>,
    /// With --operator: it may act for every namespace.
    #[arg(long, requires = "operator", conflicts_with = "tenants")]
    all_tenants: bool,
    /// With --operator: the namespaces it watches, separated by commas [default: all].
    #[arg(long, value_name = "NAMESPACES", requires = "operator")]
    watch_namespaces: Option<Namespaces>,
    /// With --operator: the doors that are open, separated by commas [default: all].
    #[arg(long, value_name = "DOORS", requires = "operator")]
    doors: Option<Doors>,
}

/// Prints them.
pub(super) fn print(flags: &InstallationFlags, namespace: Option<&str>, output: Output) -> Result<()> {
    if output == Output::Helm {
        print!("{}", helm::template());
        return Ok(());
    }
    let installation = Installation {
        namespace: namespace.unwrap_or(NAMESPACE).to_owned(),
        doors: flags.doors.clone().unwrap_or_default(),
        watched: flags.watch_namespaces.clone().unwrap_or(Namespaces::All),
        tenants: if flags.all_tenants { Tenants::All } else { Tenants::Namespaces(flags.tenants.clone()) },
        ..Installation::default()
    };
    print_manifests(&installation.manifests(), output == Output::Json)
}

/// Prints manifests as one YAML stream, or as a list in JSON.
pub(crate) fn print_manifests(manifests: &[Value], as_json: bool) -> Result<()> {
    if as_json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        println!("{}", serde_json::to_string_pretty(&list)?);
        return Ok(());
    }
    for manifest in manifests {
        print!("---\n{}", serde_saphyr::to_string(manifest)?);
    }
    Ok(())
}
