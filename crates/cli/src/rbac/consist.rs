//! `linchpin rbac --consist`: the rights of the consist process.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use linchpin_operator::{
    rights::{
        NAMESPACE,
        consist::{ConsistInstallation, ConsistResource},
    },
    settings::Namespaces,
};
use linchpin_words::{Gvk, reference::built_in_kind};

use super::operator::print_manifests;
use crate::cli::UsageError;

/// What a consist process serves.
#[derive(Debug, Args)]
pub(crate) struct ServedFlags {
    /// With --consist: the namespaces that are served, separated by commas [default: all].
    #[arg(long, value_name = "NAMESPACES", requires = "consist")]
    serve_namespaces: Option<Namespaces>,
    /// With --consist: a kind of employers; may be repeated [default: v1/Service].
    #[arg(long = "employer", value_name = "VERSION/KIND", requires = "consist")]
    employers: Vec<String>,
    /// With --consist: a kind of employees beside pods; may be repeated.
    #[arg(long = "employee", value_name = "VERSION/KIND", requires = "consist")]
    employees: Vec<String>,
}

/// Prints them.
pub(super) fn print(
    flags: &ServedFlags,
    namespace: Option<&str>,
    as_json: bool,
) -> Result<Result<ExitCode, UsageError>> {
    let resources = |words: &[String]| -> Result<Vec<ConsistResource>, UsageError> {
        words.iter().map(|word| resource(word)).collect()
    };
    let [served, further] = match [resources(&flags.employers), resources(&flags.employees)] {
        [Ok(served), Ok(further)] => [served, further],
        [Err(usage), _] | [_, Err(usage)] => return Ok(Err(usage)),
    };
    let installation = ConsistInstallation {
        namespace: namespace.unwrap_or(NAMESPACE).to_owned(),
        served: flags.serve_namespaces.clone().unwrap_or(Namespaces::All),
        employers: served,
        employees: further.into_iter().filter(|kind| kind.plural != "pods").collect(),
        ..ConsistInstallation::default()
    };
    print_manifests(&installation.manifests(), as_json)?;
    Ok(Ok(ExitCode::SUCCESS))
}

/// `v1/Service`, `example.com/v1/Gateway` as rules name it.
fn resource(word: &str) -> Result<ConsistResource, UsageError> {
    let Some((version, kind)) = word.rsplit_once('/').filter(|(version, kind)| {
        !version.is_empty() && kind.starts_with(|first: char| first.is_ascii_uppercase())
    }) else {
        return Err(UsageError(format!("{word:?} is no kind: write v1/Service or example.com/v1/Gateway")));
    };
    let kind = Gvk::from_api_version(version, kind);
    let known = built_in_kind(&kind.group, &kind.kind).map(|known| known.plural.to_owned());
    let word = kind.kind.to_lowercase();
    let guessed = match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if word.ends_with('s') => format!("{word}es"),
        _ => format!("{word}s"),
    };
    Ok(ConsistResource { group: kind.group, plural: known.unwrap_or(guessed) })
}
