//! A further kind takes a file of types, a folder and a line; one that decides by a function of its own, a file and a line:
//! `examples/fourth_door` is `linchpin` with both.

use crate::{bare, eventually, operator::without_settings, seconds, tree::feed};
use linchpin_local::Cluster;
use std::{
    fs::File,
    path::Path,
    process::{Child, Command, Stdio},
};

const NAMESPACES: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: greeted}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: greeted}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: visited}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: visited}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: all, namespace: visited},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
  subjects: [{kind: ServiceAccount, name: default, namespace: visited}]}
";

const GREETING: &str =
    "{apiVersion: fourth.example/v1, kind: Greeting, metadata: {name: hello, namespace: greeted},
  spec: {reader: reader, text: good morning}}
";

/// Waits for the Greeting, and names no state of it.
const LISTENER: &str =
    "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: listener, namespace: greeted},
  spec: {dependencies: [{resource: greet/hello}],
    actions: [{name: hear, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: heard}}}]}}
";

/// The program with the further kinds. It is built with the tests.
fn program() -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_linchpin")).parent().unwrap();
    let path = built.join("examples/fourth_door");
    assert!(
        path.exists(),
        "cargo test -p linchpin builds it; alone: cargo build -p linchpin --example fourth_door"
    );
    without_settings(Command::new(path))
}

/// A cluster with the definitions that the program prints, and the operator that it is.
struct Served {
    cluster: Cluster,
    operator: Child,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.operator.kill();
        let _ = self.operator.wait();
    }
}

fn served() -> Served {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let crds = program().arg("crds").output().unwrap();
    assert!(String::from_utf8_lossy(&crds.stdout).contains("name: greetings.fourth.example"));
    feed(cluster.kubectl().args(["apply", "--server-side", "-f", "-"]), &crds.stdout);
    let wait = ["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"];
    assert!(cluster.kubectl().args(wait).output().unwrap().status.success());
    feed(cluster.kubectl().args(["apply", "-f", "-"]), NAMESPACES.as_bytes());
    let log = File::create(cluster.kubeconfig().with_file_name("fourth-door.log")).unwrap();
    let operator = program()
        .args(["operator", "--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .args(["--lease-namespace=default", "--kubeconfig"])
        .arg(cluster.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    Served { cluster, operator }
}

impl Served {
    fn apply(&self, manifests: &[u8]) {
        feed(self.cluster.kubectl().args(["apply", "-f", "-"]), manifests);
    }

    fn get(&self, namespace: &str, object: &str, path: &str) -> Option<String> {
        let form = format!("jsonpath={path}");
        let output =
            self.cluster.kubectl().args(["get", object, "-n", namespace, "-o", &form]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = program().env("KUBECONFIG", self.cluster.kubeconfig()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_further_door_is_served_drawn_explained_and_given_rights() {
    let served = served();
    let both = format!("{GREETING}---\n{LISTENER}");
    let rights = feed(program().args(["rbac", "-f", "-"]), both.as_bytes());
    served.apply(&rights.stdout);
    served.apply(both.as_bytes());
    eventually("it waits", seconds(20), || {
        served.get("greeted", "greet/hello", "{.status.phase}").as_deref() == Some("Waiting")
    });
    let listener = |path: &str| served.get("greeted", "resourcedependency/listener", path);
    eventually("the one that waits for it waits too", seconds(20), || {
        listener("{.status.message}").is_some_and(|message| message.contains("it is not ready"))
    });
    let made = |object: &str| served.get("greeted", object, "{.metadata.uid}");
    assert_eq!(made("configmap/heard"), None, "nothing is heard before it is said");
    let tree = served.says(&["tree", "-n", "greeted"]);
    assert!(tree.contains("greet greeted/hello") && tree.contains("cm greeted/reader"), "{tree}");
    let told = served.says(&["explain", "greet/hello", "-n", "greeted"]);
    assert!(told.contains("waits for ConfigMap greeted/reader"), "{told}");
    served.apply(b"{apiVersion: v1, kind: ConfigMap, metadata: {name: reader, namespace: greeted}}");
    eventually("it is said", seconds(20), || {
        served.get("greeted", "configmap/greeting-hello", "{.data.text}").as_deref() == Some("good morning")
    });
    eventually("it is done", seconds(20), || {
        served.get("greeted", "greet/hello", "{.status.phase}").as_deref() == Some("Completed")
    });
    eventually("the one that waits for it goes on", seconds(20), || {
        listener("{.status.phase}").as_deref() == Some("Completed")
    });
    assert!(made("configmap/heard").is_some());
}

#[test]
fn a_kind_that_decides_by_a_function_of_its_own_is_served_without_a_status_of_ours() {
    let served = served();
    let service = "{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: visited,
        annotations: {fourth.example/visitors: book}}, spec: {ports: [{port: 80}]}}";
    served.apply(service.as_bytes());
    let book = || served.get("visited", "configmap/book", "{.metadata.uid}");
    eventually("the book is there", seconds(20), || book().is_some());
    let first = book();
    let delete = ["delete", "configmap", "book", "-n", "visited"];
    assert!(served.cluster.kubectl().args(delete).output().unwrap().status.success());
    eventually("the book is there again", seconds(20), || book().is_some() && book() != first);
    let touched = served.get("visited", "service/shop", "{.metadata.managedFields[*].manager}");
    assert!(!touched.unwrap().contains("linchpin"), "nothing of ours is written to the Service");
}
