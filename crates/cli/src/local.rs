//! `linchpin local`: a real Kubernetes on this machine, from one command to the next.
//!
//! Everything is done by `linchpin-local`; here are only the arguments and the words. A cluster started by `up` runs
//! until `down`, also after this process, the terminal and the login have ended.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use linchpin_local::{
    Cluster, ClusterOptions, Component, Error, Image, KUBERNETES_VERSION, default_directory, down, is_static,
    waiter_image,
};

use crate::output;

/// The waiter's image, called as `local load` calls what it packs.
const WAITER: &str = "localhost/linchpin-wait:dev";

/// How many lines of each log are shown when no component is named.
const LINES: usize = 10;

/// A real Kubernetes on this machine.
#[derive(Debug, Args)]
pub(crate) struct LocalCommand {
    /// Where the cluster lies [default: linchpin/local in your state directory].
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start a cluster and return when it is ready.
    Up(Up),
    /// End the cluster and remove everything of it, whatever state it is in.
    Down,
    /// Say what runs; exit code 1 unless all of it does.
    Status,
    /// Print the path of the administrator's kubeconfig.
    Kubeconfig,
    /// Run kubectl on the cluster.
    Kubectl {
        /// kubectl's arguments, after `--`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        arguments: Vec<String>,
    },
    /// Run a program with the cluster's kubeconfig; with a real node also in the cluster's network, with its names.
    Run {
        /// The program and its arguments, after `--`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
        program: Vec<OsString>,
    },
    /// Give an image to the real node: a tar file, or a static program, which is packed first.
    Load(Load),
    /// Pack a static program as an image of its own, without a container engine.
    Pack(Pack),
    /// Print a component's log, or the end of each.
    Logs {
        /// The component: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, containerd, kwok …
        component: Option<Component>,
    },
}

#[derive(Debug, Args)]
struct Load {
    /// The tar file (an OCI layout, or what docker save writes), or the program.
    file: PathBuf,
    /// What the image of a program is called [default: localhost/<program>:dev].
    #[arg(long)]
    name: Option<String>,
}

#[derive(Debug, Args)]
struct Pack {
    /// The program.
    program: PathBuf,
    /// Where the image goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What the image is called [default: localhost/<program>:dev].
    #[arg(long)]
    name: Option<String>,
    /// A label such as org.opencontainers.image.version=1.2.3; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

#[derive(Debug, Args)]
struct Up {
    /// Add a real node: kubelet and containerd (needs root).
    #[arg(long)]
    node: bool,
    /// Add simulated nodes, one unless a number is given.
    #[arg(long, value_name = "NODES", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    kwok: Option<u32>,
    /// Behave as an older minor version, such as 1.33.
    #[arg(long, value_name = "VERSION")]
    emulated_version: Option<String>,
    /// The API server's port on 127.0.0.1 [default: a free one].
    #[arg(long)]
    port: Option<u16>,
    /// Let etcd wait for the disk on each write.
    #[arg(long)]
    fsync: bool,
    /// A further flag of a component, such as kube-apiserver=--v=4; may be repeated.
    #[arg(long = "flag", value_name = "COMPONENT=FLAG", value_parser = parse_flag)]
    flags: Vec<(Component, String)>,
}

/// Does what was asked for.
pub(crate) fn run(command: LocalCommand) -> Result<ExitCode> {
    let dir = match command.dir {
        Some(dir) => dir,
        None => default_directory()?,
    };
    match command.action {
        Action::Up(asked) => up(&dir, asked),
        Action::Down => {
            let found = down(&dir)?;
            say(&format!(
                "{} {}",
                if found { "ended the cluster in" } else { "no cluster in" },
                dir.display()
            ))
        }
        Action::Status => status(&dir),
        Action::Kubeconfig => say(&Cluster::open(&dir)?.kubeconfig().display().to_string()),
        Action::Kubectl { arguments } => {
            // The process becomes kubectl: signals, terminal and exit code are its own.
            let error = Cluster::open(&dir)?.kubectl().args(arguments).exec();
            Err(error).context("running kubectl")
        }
        Action::Run { program } => {
            let (program, arguments) = program.split_first().context("no program is named")?;
            // The process becomes the program, as above.
            let error = Cluster::open(&dir)?.command(program)?.args(arguments).exec();
            Err(error).with_context(|| format!("running {}", program.display()))
        }
        Action::Logs { component } => logs(&Cluster::open(&dir)?, component),
        Action::Load(asked) => load(&Cluster::open(&dir)?, &asked),
        Action::Pack(asked) => {
            let image = image_of(&asked.program, asked.name, asked.labels)?;
            image.write(&asked.out)?;
            say(&format!("packed {} into {}", image.name, asked.out.display()))
        }
    }
}

fn up(dir: &Path, asked: Up) -> Result<ExitCode> {
    let mut options = ClusterOptions {
        dir: Some(dir.to_owned()),
        port: asked.port,
        emulated_version: asked.emulated_version,
        fsync: asked.fsync,
        node: asked.node,
        kwok: asked.kwok,
        ..ClusterOptions::default()
    };
    for (component, flag) in asked.flags {
        options = options.flag(component, flag);
    }
    let begun = Instant::now();
    let cluster = match Cluster::start(&options) {
        Err(Error::AlreadyRunning { dir }) => return already_running(&dir, &options),
        other => other?,
    };
    if asked.node {
        import_ourselves(&cluster)?;
    }
    let (server, kubeconfig) = (cluster.server(), cluster.kubeconfig());
    cluster.detach()?;
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!(
        "Kubernetes {KUBERNETES_VERSION} is ready at {server} after {seconds:.1} s\n\n  \
         export KUBECONFIG={}\n\n`{}` ends it",
        kubeconfig.display(),
        ending(dir)
    ))
}

/// Gives the node the images of what lies beside this program, so that the chart can be installed there.
fn import_ourselves(cluster: &Cluster) -> Result<()> {
    let own = env::current_exe().context("looking for this program")?;
    let program = own.with_file_name("linchpin");
    let mut images = Vec::new();
    if is_static(&program) {
        images.push(image_of(&program, None, Vec::new())?);
    } else {
        output::note(&format!(
            "no image of linchpin is on the node: {} is not static (make image, then linchpin local load target/linchpin.tar)",
            program.display()
        ));
    }
    // The node has it under the name of its tests already; this is the one that goes with the operator's.
    images.extend(waiter_image().map(|image| Image { name: WAITER.to_owned(), ..image }));
    for image in images {
        cluster.import(&image)?;
    }
    Ok(())
}

fn load(cluster: &Cluster, asked: &Load) -> Result<ExitCode> {
    if asked.file.extension().is_some_and(|extension| extension == "tar") {
        cluster.import_archive(&asked.file)?;
        return say(&format!("the node has what is in {}", asked.file.display()));
    }
    let image = image_of(&asked.file, asked.name.clone(), Vec::new())?;
    cluster.import(&image)?;
    say(&format!("the node has {}", image.name))
}

/// The image of a program that needs nothing but itself.
fn image_of(program: &Path, name: Option<String>, labels: Vec<(String, String)>) -> Result<Image> {
    if !is_static(program) {
        bail!(
            "{} is no static program, so an image of it alone would not run: build it for a musl target (make image)",
            program.display()
        );
    }
    let called = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.unwrap_or_else(|| format!("localhost/{called}:dev"));
    Ok(Image { labels: labels.into_iter().collect(), ..Image::of(name, program) })
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The command that ends the cluster of a directory.
fn ending(dir: &Path) -> String {
    if default_directory().is_ok_and(|default| default == dir) {
        "linchpin local down".to_owned()
    } else {
        format!("linchpin local down --dir {}", dir.display())
    }
}

fn already_running(dir: &Path, asked: &ClusterOptions) -> Result<ExitCode> {
    let cluster = Cluster::open(dir)?;
    let running = ClusterOptions { dir: asked.dir.clone(), ..cluster.options() };
    if running != *asked {
        bail!(
            "a cluster is running in {} already, started with other options: `{}` ends it",
            dir.display(),
            ending(dir)
        );
    }
    say(&format!("a cluster is running in {} already, at {}", dir.display(), cluster.server()))
}

fn status(dir: &Path) -> Result<ExitCode> {
    let cluster = match Cluster::open(dir) {
        Err(Error::NotRunning { dir }) => {
            say(&format!("no cluster in {}", dir.display()))?;
            return Ok(ExitCode::FAILURE);
        }
        other => other?,
    };
    let ready = cluster.is_ready();
    say(&format!(
        "directory   {}\nserver      {} ({})\nkubeconfig  {}\naudit log   {}\n",
        cluster.dir().display(),
        cluster.server(),
        if ready { "ready" } else { "not ready" },
        cluster.kubeconfig().display(),
        cluster.audit_log().display(),
    ))?;
    let parts = cluster.status();
    for part in &parts {
        let state =
            part.pid.map_or_else(|| "not running".to_owned(), |pid| format!("running, process {pid}"));
        say(&format!("{:<24} {state}", part.component.name()))?;
    }
    let whole = ready && parts.iter().all(|part| part.pid.is_some());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn logs(cluster: &Cluster, component: Option<Component>) -> Result<ExitCode> {
    if let Some(component) = component {
        let path = cluster.log(component);
        let mut log =
            fs::File::open(&path).with_context(|| format!("this cluster has no log of {component}"))?;
        return match io::copy(&mut log, &mut io::stdout()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("printing the log"),
            _ => Ok(ExitCode::SUCCESS),
        };
    }
    for part in cluster.status() {
        let path = cluster.log(part.component);
        let lines =
            fs::File::open(&path).map(|log| BufReader::new(log).lines().map_while(io::Result::ok).collect());
        let lines: Vec<String> = lines.unwrap_or_default();
        say(&format!("== {} ({})", part.component, path.display()))?;
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            say(line)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_flag(text: &str) -> Result<(Component, String), String> {
    let (component, flag) = text.split_once('=').ok_or("say which component's flag: COMPONENT=FLAG")?;
    let component = component.parse::<Component>().map_err(|error| error.to_string())?;
    if !flag.starts_with('-') {
        return Err(format!("{flag:?} is not a flag: it must begin with a dash"));
    }
    Ok((component, flag.to_owned()))
}

/// Prints a line. A reader that has seen enough (`| head`) is no failure.
fn say(text: &str) -> Result<ExitCode> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing to standard output")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_its_component_first() {
        let parsed = parse_flag("kube-apiserver=--v=4").unwrap();
        assert_eq!(parsed, (Component::ApiServer, "--v=4".to_owned()));
    }

    #[test]
    fn a_flag_of_nobody_or_without_a_dash_is_refused() {
        assert!(parse_flag("--v=4").unwrap_err().contains("not a component"));
        assert!(parse_flag("kube-proxy=--v=4").unwrap_err().contains("kube-apiserver"));
        assert!(parse_flag("etcd=v").unwrap_err().contains("dash"));
    }
}
