//! The network of a cluster with a real node: a namespace with nothing in it but what the cluster needs.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::{ADDRESS, run};
use crate::{
    components::{SERVICE_ADDRESS, SERVICE_ADDRESSES},
    error::{Error, Result},
};

/// Gives the namespace of the process `holder` its addresses.
///
/// The node's address lies on one end of a pair of links, since a node's address must not be a loopback one, and the
/// pair's other end is its only neighbour. The API server's service address is simply an address of its own, and so are
/// those of all other Services: what listens there (`kubernetes/services`) is reached.
pub(crate) fn set_up(holder: i32) -> Result<()> {
    await_namespace(holder)?;
    let script = format!(
        "ip link set lo up
ip link add v0 type veth peer name v1
ip addr add {ADDRESS}/24 dev v0
ip link set v0 up
ip link set v1 up
ip addr add {SERVICE_ADDRESS}/32 dev lo
ip route add local {SERVICE_ADDRESSES} dev lo
ip route add default dev v0
echo 1 >/proc/sys/net/ipv4/ip_forward"
    );
    let mut command = Command::new("nsenter");
    command.arg(format!("--target={holder}")).args(["--net", "--", "sh", "-ec", &script]);
    // As in `find`: ip lies where not every shell looks.
    let path = std::env::var("PATH").unwrap_or_default();
    run(command.env("PATH", format!("{path}:/usr/sbin:/sbin")), "setting up the cluster's network")
}

/// Waits until the process has left the host's network: only then is there something to set up.
fn await_namespace(holder: i32) -> Result<()> {
    let path = format!("/proc/{holder}/ns/net");
    let deadline = Instant::now() + Duration::from_secs(5);
    while fs::read_link(&path).map_err(Error::io("reading", &path))?
        == fs::read_link("/proc/self/ns/net").map_err(Error::io("reading", "/proc/self/ns/net"))?
    {
        if Instant::now() > deadline {
            return Err(Error::Command {
                doing: "making a network namespace".to_owned(),
                command: "unshare --net".to_owned(),
                output: "the process is still in the host's".to_owned(),
            });
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
