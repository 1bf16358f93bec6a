//! The row for the kinds of ours, and those for the kinds of other projects.

use super::{
    super::{foreign, generic},
    Applies, PLAIN, ReadinessRow, kinds,
};

/// Crossplane's own groups, which are no provider's.
const CROSSPLANE_CORE: &[&str] = &[
    "apiextensions.crossplane.io",
    "pkg.crossplane.io",
    "ops.crossplane.io",
    "protection.crossplane.io",
    "secrets.crossplane.io",
    "meta.pkg.crossplane.io",
];

/// The rule for the kinds of ours. Which these are is not known here: whoever asks says so.
pub static OURS: ReadinessRow = ReadinessRow {
    name: "Linchpin kinds",
    applies: &[Applies::Ours],
    ready: "`Ready` is True",
    in_progress: "`Reconciling` is True, or `Ready` is not True (yet)",
    failed: "`Stalled` is True",
    observes: true,
    reads: conditions!["status.observedGeneration"],
    rule: generic::ours,
    ..PLAIN
};

pub(super) static ROWS: &[ReadinessRow] = &[
    ReadinessRow {
        name: "KubeFlex ControlPlane",
        applies: &[kinds("tenancy.kflex.kubestellar.org", &["ControlPlane"])],
        ready: "`Ready` is True",
        in_progress: "`Ready` is not True, with its reason, or that of `Synced` if it is an error",
        observes: true,
        reads: conditions!["status.observedGeneration"],
        rule: foreign::control_plane,
        ..PLAIN
    },
    ReadinessRow {
        name: "Argo CD Application",
        applies: &[kinds("argoproj.io", &["Application"])],
        ready: "health is Healthy and sync is Synced, for the source that the spec names",
        in_progress: "any other health or sync status, a sync under way, a source that was not compared yet",
        failed: "health is Degraded",
        reads: reads![
            "operation",
            "spec.source",
            "spec.sources",
            "status.health",
            "status.sync.status",
            "status.sync.revision",
            "status.sync.comparedTo",
            "status.operationState.phase",
            "status.operationState.message"
        ],
        rule: foreign::argo_application,
        ..PLAIN
    },
    ReadinessRow {
        name: "Flux",
        applies: &[
            Applies::Groups { suffix: ".toolkit.fluxcd.io", except: &[] },
            kinds("fluxcd.controlplane.io", &["FluxInstance", "ResourceSet", "ResourceSetInputProvider"]),
        ],
        ready: "`Ready` is True (Alerts, Providers and OCI HelmRepositories have no status: they exist)",
        in_progress: "`Reconciling` is True, or `Ready` is not True (yet)",
        failed: "`Stalled` is True",
        observes: true,
        reads: conditions!["spec.suspend", "spec.type", "status.observedGeneration"],
        rule: foreign::flux,
        ..PLAIN
    },
    ReadinessRow {
        name: "cert-manager",
        applies: &[kinds("cert-manager.io", &["Certificate", "Issuer", "ClusterIssuer"])],
        ready: "`Ready` is True",
        in_progress: "`Ready` is not True (yet), with the reason",
        failed: "`Issuing` is False with `Failed`: the next try is an hour or more away",
        observes: true,
        reads: conditions!["status.observedGeneration"],
        rule: foreign::certificate,
        ..PLAIN
    },
    ReadinessRow {
        name: "Crossplane packages",
        applies: &[kinds("pkg.crossplane.io", &["Provider", "Function", "Configuration"])],
        ready: "`Installed` and `Healthy` are True",
        in_progress: "one is not (yet), with the reason",
        observes: true,
        reads: conditions!["status.observedGeneration"],
        rule: foreign::crossplane_package,
        ..PLAIN
    },
    ReadinessRow {
        name: "Crossplane definitions",
        applies: &[kinds("apiextensions.crossplane.io", &["CompositeResourceDefinition"])],
        ready: "`Established` is True, and `Offered` if it has claims",
        in_progress: "one is not (yet), with the reason",
        observes: true,
        reads: conditions!["spec.claimNames", "status.observedGeneration"],
        rule: foreign::crossplane_definition,
        ..PLAIN
    },
    ReadinessRow {
        name: "Crossplane resources",
        applies: &[
            Applies::Groups { suffix: ".crossplane.io", except: CROSSPLANE_CORE },
            Applies::Groups { suffix: ".upbound.io", except: &[] },
        ],
        ready: "`Synced` and `Ready` are True (provider settings: they exist); so for every kind whose `Synced` \
                has Crossplane's reasons, such as composites in groups of your own",
        in_progress: "one is not (yet), with the reason",
        failed: "`Stalled` is True",
        observes: true,
        reads: conditions!["status.observedGeneration"],
        rule: foreign::crossplane_provider,
        ..PLAIN
    },
];
