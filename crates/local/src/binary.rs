//! The programs a cluster runs, built from Go modules once and kept in the user's cache directory.
//!
//! The sources of our own Go programs are part of this crate, so a cluster can be started from anywhere. A build is
//! found by the hash of what it is made of (sources, go.mod, go.sum, flags, Go's version): an update of any builds
//! anew, a clean clone does not.

mod cache;
mod go;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    paths::{create, write},
};

/// The version of Kubernetes that the clusters run.
pub const KUBERNETES_VERSION: &str = "v1.36.4";

const KWOK_VERSION: &str = "v0.8.0";

/// The version of Helm that the chart is tried with.
pub const HELM_VERSION: &str = "v4.3.1";

/// A Go program of ours: the file names and contents that it is built from.
type Sources = [(&'static str, &'static str)];

macro_rules! sources {
    ($($path:literal),+ $(,)?) => { &[$(($path, include_str!(concat!("../../../kubernetes/", $path)))),+] };
}

const KUBERNETES: &Sources = sources!["go.mod", "go.sum", "main.go"];

const TOOLS: &Sources = sources![
    "keeper/main.go",
    "keeper/watch.go",
    "keeper/clean.go",
    "keeper/forward.go",
    "keeper/node.go",
    "keeper/run.go",
    "services/main.go",
    "services/follow.go",
    "services/names.go",
    "services/proxy.go",
    "services/world.go",
    "stream/stream.go",
    "images/pause/main.go",
    "images/workload/main.go",
];

/// Names under which the one Kubernetes binary is called.
const LINKS: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];

/// The small programs of ours.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// Cleans up, forwards, holds namespaces.
    pub(crate) keeper: PathBuf,
    /// Makes Services reachable by address and by name.
    pub(crate) services: PathBuf,
    /// The process that holds a pod's namespaces.
    pub(crate) pause: PathBuf,
    /// The test image's only program.
    pub(crate) workload: PathBuf,
}

/// kwok and the stages that make its pods run.
#[derive(Clone, Debug)]
pub(crate) struct Kwok {
    pub(crate) program: PathBuf,
    pub(crate) stages: PathBuf,
}

/// Builds what a cluster needs, if that has not been done yet, and returns the directory that holds a program for
/// each component, kubectl included.
pub fn kubernetes() -> Result<PathBuf> {
    let version = go::version()?;
    let flags = format!(
        "all=-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION} \
         -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36 \
         -X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES_VERSION}"
    );
    cache::entry("kubernetes", &cache::key(KUBERNETES, &[&version, &flags]), |dir| {
        let sources = dir.join("sources");
        write_sources(KUBERNETES, &sources)?;
        let program = dir.join("kubernetes");
        go::Build {
            what: &format!("Kubernetes {KUBERNETES_VERSION}"),
            expect: "the first build takes 5 to 15 minutes, later runs find it in the cache",
            dir: &sources,
            arguments: &["build", "-v", "-trimpath", "-tags", "notest,grpcnotrace", "-ldflags", &flags, "-o"],
            target: Some(&program),
            bin: None,
        }
        .run()?;
        for name in LINKS {
            symlink("kubernetes", dir.join(name)).map_err(Error::io("linking", dir.join(name)))?;
        }
        fs::remove_dir_all(&sources).map_err(Error::io("removing", sources))
    })
}

/// The small programs of ours, built in a few seconds.
pub(crate) fn tools() -> Result<Tools> {
    let version = go::version()?;
    let dir = cache::entry("tools", &cache::key(TOOLS, &[&version]), |dir| {
        let sources = dir.join("sources");
        write_sources(TOOLS, &sources)?;
        write(&sources.join("go.mod"), "module linchpin.dev/kubernetes\n\ngo 1.26.0\n")?;
        go::Build {
            what: "the local cluster's helpers",
            expect: "a few seconds",
            dir: &sources,
            arguments: &["install", "-trimpath", "-ldflags", "-s -w", "./..."],
            target: None,
            bin: Some(dir),
        }
        .run()?;
        fs::remove_dir_all(&sources).map_err(Error::io("removing", sources))
    })?;
    let program = |name: &str| dir.join(name);
    Ok(Tools {
        keeper: program("keeper"),
        services: program("services"),
        pause: program("pause"),
        workload: program("workload"),
    })
}

/// kwok, from its own module.
pub(crate) fn kwok() -> Result<Kwok> {
    let version = go::version()?;
    let dir = cache::entry("kwok", &cache::key(&[], &[KWOK_VERSION, &version]), |dir| {
        let module = format!("sigs.k8s.io/kwok@{KWOK_VERSION}");
        let program = &format!("sigs.k8s.io/kwok/cmd/kwok@{KWOK_VERSION}");
        install(&format!("kwok {KWOK_VERSION}"), "2 to 4", program, dir)?;
        let stages = stages(&go::module_directory(&module)?.join("kustomize/stage"))?;
        write(&dir.join("stages.yaml"), &stages)
    })?;
    Ok(Kwok { program: dir.join("kwok"), stages: dir.join("stages.yaml") })
}

/// Helm, from its own module: the program.
pub fn helm() -> Result<PathBuf> {
    let version = go::version()?;
    let dir = cache::entry("helm", &cache::key(&[], &[HELM_VERSION, &version]), |dir| {
        let program = &format!("helm.sh/helm/v4/cmd/helm@{HELM_VERSION}");
        install(&format!("Helm {HELM_VERSION}"), "2 to 5", program, dir)
    })?;
    Ok(dir.join("helm"))
}

/// A program from its own module.
fn install(what: &str, minutes: &str, program: &str, dir: &Path) -> Result<()> {
    go::Build {
        what,
        expect: &format!("the first build takes {minutes} minutes, later runs find it in the cache"),
        dir,
        arguments: &["install", "-v", "-trimpath", "-ldflags", "-s -w", program],
        target: None,
        bin: Some(dir),
    }
    .run()
}

/// kwok's own set of stages under which nodes and pods are ready at once, as one file.
fn stages(dir: &Path) -> Result<String> {
    let mut documents = Vec::new();
    for (folder, prefix) in
        [("node/fast", "node-"), ("node/heartbeat-with-lease", "node-"), ("pod/fast", "pod-")]
    {
        let folder = dir.join(folder);
        let entries = fs::read_dir(&folder).map_err(Error::io("reading", &folder))?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(prefix) && name.ends_with(".yaml")
            })
            .collect();
        files.sort();
        for file in files {
            documents.push(fs::read_to_string(&file).map_err(Error::io("reading", file))?);
        }
    }
    Ok(documents.join("\n---\n"))
}

fn write_sources(sources: &Sources, dir: &Path) -> Result<()> {
    for (name, content) in sources {
        let path = dir.join(name);
        create(path.parent().unwrap_or(dir))?;
        write(&path, content)?;
    }
    Ok(())
}
