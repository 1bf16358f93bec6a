//! `linchpin crds`: the custom resource definitions, ready for `kubectl apply -f -`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use linchpin_doors::Registry;

/// Prints them all as one YAML stream.
pub(crate) fn run(kinds: &Registry) -> Result<ExitCode> {
    for definition in kinds.definitions() {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        let yaml = linchpin_api::to_yaml(&definition).with_context(|| format!("writing {name} as YAML"))?;
        print!("---\n{yaml}");
    }
    Ok(ExitCode::SUCCESS)
}
