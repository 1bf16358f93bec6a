//! A real node: kubelet and containerd, real containers, on this machine and apart from it.
//!
//! Such a cluster has a network namespace of its own, in which etcd, the API server and the node live on the usual
//! ports; a forwarder carries the host's connections to the API server in. The node itself has mount and process
//! namespaces besides, with its own `/run`, `/var/lib` and `/var/log`: nodes do not get into each other's way, and
//! when a node's first process ends, every container and every mount of it is gone. Only control groups are left,
//! which the keeper removes.

mod configuration;
mod control_groups;
mod network;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) use self::{control_groups::create as create_control_groups, network::set_up as set_up_network};
use crate::{
    Image,
    binary::Tools,
    certificates::{self, CertificateAuthority},
    error::{Error, Result},
    kubeconfig,
    paths::{Directory, create, write},
    process::{Launch, ProcessScope},
};

/// The node's address, and the API server's, in the cluster's own network.
pub(crate) const ADDRESS: &str = "10.99.0.1";
/// The node's name.
pub(crate) const NAME: &str = "node-1";
/// Where pods, and programs in the cluster's network, ask for names.
pub(crate) const NAME_SERVER: &str = "10.96.0.10";
/// The domain of Services.
pub(crate) const DOMAIN: &str = "cluster.local";
/// The API server's port in the cluster's own network: that of its service, so that no address is translated.
pub(crate) const API_SERVER_PORT: u16 = 443;
/// The administrator's kubeconfig for programs in the cluster's network.
const INSIDE: &str = "inside";
/// Names of sockets below the directory take up to 47 of the 107 bytes that a socket's path may have.
const LONGEST_PATH: usize = 60;

/// The programs a node needs and the Debian packages that bring them.
const PROGRAMS: [(&str, &str); 8] = [
    ("containerd", "containerd"),
    ("containerd-shim-runc-v2", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("bridge", "containernetworking-plugins"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
];
/// Where Debian puts CNI plugins.
const PLUGINS: &str = "/usr/lib/cni";

/// Whether a real node can run on this machine: an error says what is missing and how to get it.
pub fn check_node_support() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let missing = PROGRAMS.into_iter().filter(|(program, _)| find(program).is_none());
    let (programs, mut packages): (Vec<String>, Vec<String>) =
        missing.map(|(program, package)| (program.to_owned(), package.to_owned())).unzip();
    packages.dedup();
    if programs.is_empty() { Ok(()) } else { Err(Error::PackagesMissing { programs, packages }) }
}

/// Whether tests may rely on a real node here: `make node-packages` installs what one needs where CI runs as root on
/// Debian. There a node that cannot run is a failure, and nothing to skip.
pub fn is_node_promised() -> bool {
    let is_ci = env::var("CI").is_ok_and(|value| value == "true");
    is_ci && nix::unistd::geteuid().is_root() && find("apt-get").is_some()
}

/// Refuses a directory below which the node's sockets could not be opened.
pub(crate) fn check_path(dir: &Directory) -> Result<()> {
    let path = dir.path();
    if path.as_os_str().len() <= LONGEST_PATH {
        return Ok(());
    }
    Err(Error::PathTooLong { dir: path.to_owned(), limit: LONGEST_PATH })
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Root's programs are not in every shell's PATH.
    let usual = ["/usr/sbin", "/sbin", PLUGINS].map(PathBuf::from);
    env::split_paths(&path).chain(usual).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// Writes everything the node's processes read.
pub(crate) fn write_files(dir: &Directory, authority: &CertificateAuthority) -> Result<()> {
    let node = dir.node();
    for path in [node.clone(), node.join("cni"), node.join("kubelet")] {
        create(&path)?;
    }
    let address = ADDRESS.parse().into_iter().collect::<Vec<_>>();
    certificates::write_pair(dir, "kubelet-serving", &authority.serving(NAME, &[NAME], &address)?)?;
    let user = format!("system:node:{NAME}");
    let pair = authority.client(&user, Some("system:nodes"))?;
    let server = format!("https://{ADDRESS}:{API_SERVER_PORT}");
    write(&dir.kubeconfig("kubelet"), &kubeconfig::render(&server, authority.certificate(), &user, &pair))?;
    let user = "system:kube-proxy";
    certificates::write_pair(dir, "services", &authority.client(user, None)?)?;
    let admin = authority.client("admin", Some("system:masters"))?;
    let inside = kubeconfig::render(&server, authority.certificate(), "admin", &admin);
    write(&dir.kubeconfig(INSIDE), &inside)?;
    let search = format!("default.svc.{DOMAIN} svc.{DOMAIN} {DOMAIN}");
    let names = format!("nameserver {NAME_SERVER}\nsearch {search}\noptions ndots:5\n");
    write(&names_file(dir), &names)?;
    write(&node.join("containerd.toml"), &configuration::containerd(dir, PLUGINS))?;
    write(&node.join("kubelet.json"), &configuration::kubelet(dir))?;
    write(&node.join("cni/linchpin.conflist"), &configuration::network(dir))
}

/// The file that says that the node's namespaces are ready to be entered.
pub(crate) fn ready_file(dir: &Directory) -> PathBuf {
    dir.node().join("ready")
}

/// The file that says that Services can be reached.
pub(crate) fn services_file(dir: &Directory) -> PathBuf {
    dir.node().join("services-ready")
}

/// What a program in the cluster's network finds as `/etc/resolv.conf`.
pub(crate) fn names_file(dir: &Directory) -> PathBuf {
    dir.node().join("resolv.conf")
}

/// containerd's socket.
pub(crate) fn socket(dir: &Directory) -> PathBuf {
    dir.node().join("containerd.sock")
}

/// Holds the cluster's network namespace.
pub(crate) fn hold_network(tools: &Tools) -> Launch {
    let keeper = tools.keeper.display().to_string();
    Launch::on_host("unshare", ["--net", "--", &keeper, "hold"].map(str::to_owned).to_vec())
}

/// Carries connections to a port of the host to the API server.
pub(crate) fn forward(tools: &Tools, port: u16) -> Launch {
    let arguments = vec!["forward".to_owned(), format!("127.0.0.1:{API_SERVER_PORT}")];
    Launch { listen: Some(port), ..Launch::on_host(&tools.keeper, arguments).at(ProcessScope::Network) }
}

/// Makes Services reachable.
pub(crate) fn services(tools: &Tools, dir: &Directory) -> Launch {
    let server = format!("https://{ADDRESS}:{API_SERVER_PORT}");
    let files = [services_file(dir), dir.certificate("ca"), dir.certificate("services"), dir.key("services")];
    let [ready, authority, certificate, key] = files.map(|path| path.display().to_string());
    let arguments = vec![ready, server, authority, certificate, key];
    Launch::on_host(&tools.services, arguments).at(ProcessScope::Network)
}

/// The command that becomes `program` in the cluster's network; `holder` is the process that holds that.
pub(crate) fn inside(tools: &Tools, dir: &Directory, holder: i32, program: &OsStr) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--target={holder}")).args(["--net", "--"]).arg(&tools.keeper).arg("run");
    command.arg(names_file(dir)).arg(program).env("KUBECONFIG", dir.kubeconfig(INSIDE));
    command
}

/// Holds the node's namespaces.
pub(crate) fn hold_node(tools: &Tools, dir: &Directory, programs: &Path) -> Launch {
    let mut arguments = vec!["node".to_owned(), ready_file(dir).display().to_string()];
    arguments.extend([dir.path(), programs].map(|path| path.display().to_string()));
    Launch { forks: true, ..Launch::on_host(&tools.keeper, arguments).at(ProcessScope::Network) }
}

/// Runs the node's containers.
pub(crate) fn containerd(dir: &Directory, extra: impl Iterator<Item = String>) -> Launch {
    let configuration = dir.node().join("containerd.toml").display().to_string();
    let arguments = ["--config".to_owned(), configuration].into_iter().chain(extra).collect();
    Launch::on_host("containerd", arguments).at(ProcessScope::Node)
}

/// The node's agent.
pub(crate) fn kubelet(dir: &Directory, programs: &Path, extra: impl Iterator<Item = String>) -> Launch {
    let node = dir.node();
    let arguments = [
        format!("--config={}", node.join("kubelet.json").display()),
        format!("--kubeconfig={}", dir.kubeconfig("kubelet").display()),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={ADDRESS}"),
        format!("--root-dir={}", node.join("kubelet").display()),
        format!("--cert-dir={}", node.join("kubelet-certificates").display()),
    ];
    Launch::on_host(programs.join("kubelet"), arguments.into_iter().chain(extra).collect())
        .at(ProcessScope::Node)
}

/// The images every node has.
pub(crate) fn images(tools: &Tools) -> [Image; 2] {
    [Image::of("localhost/pause:1", &tools.pause), Image::of("localhost/workload:1", &tools.workload)]
}

/// Gives an image to the node's containerd; `holder` is the node's first process.
pub(crate) fn import(dir: &Directory, holder: i32, image: &Image) -> Result<()> {
    let file = dir.node().join(format!("import-{}.tar", image.name.replace(['/', ':'], "-")));
    image.write(&file)?;
    let imported = import_archive(dir, holder, &file, &format!("importing image {}", image.name));
    let removed = fs::remove_file(&file).map_err(Error::io("removing", file));
    imported.and(removed)
}

/// Gives an image in a file, as `docker save` or [`Image::write`] make it, to the node's containerd.
pub(crate) fn import_archive(dir: &Directory, holder: i32, file: &Path, doing: &str) -> Result<()> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--target={holder}")).args(["--net", "--mount", "--pid", "--", "ctr", "--address"]);
    command.arg(socket(dir)).args(["--namespace", "k8s.io", "images", "import"]).arg(file);
    run(&mut command, doing)
}

/// Runs a helper command to its end.
fn run(command: &mut Command, doing: &str) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let output = command.stdin(Stdio::null()).output().map_err(Error::io("running", program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Command {
        doing: doing.to_owned(),
        command: format!("{command:?}"),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
