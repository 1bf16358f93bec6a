//! What the help of each command shows at its end. Lines are complete commands.

pub(crate) const PROGRAM: &str = "\
Examples:
  linchpin check --pre                                may Linchpin be installed in this cluster?
  linchpin manifests | kubectl apply --server-side -f -
  linchpin tree -A --unmet                            what waits for what
  linchpin explain rd/migrate -n shop                 why, down to the cause";

pub(crate) const OPERATOR: &str = "\
Examples:
  linchpin operator --kubeconfig ~/.kube/config --log-format=text
  linchpin operator --watch-namespaces=shop,data --doors=appBundle";

pub(crate) const CONSIST: &str = "\
Examples:
  linchpin consist demo-provider                      a provider to look at, on port 9900
  linchpin consist enable demo --provider http://127.0.0.1:9900
  linchpin consist enable haproxy --haproxy unix:/run/haproxy/admin.sock
  linchpin consist list                               what is served
  linchpin consist disable demo --provider http://127.0.0.1:9900";

pub(crate) const CRDS: &str = "\
Examples:
  linchpin crds | kubectl apply --server-side -f -";

pub(crate) const MANIFESTS: &str = "\
Examples:
  linchpin manifests | kubectl apply --server-side -f -
  linchpin manifests --image registry.example.com/linchpin:1.2.3 > install.yaml
  linchpin manifests --no-crds | kubectl delete -f -  take it away, and leave the objects of our kinds";

pub(crate) const CHECK: &str = "\
Examples:
  linchpin check --pre                                before it is installed
  linchpin check                                      is it installed and well?
  linchpin check --wait 2m -o short                   until it is; only what is not well
  linchpin check --pre-uninstall                      what would hang without an operator";

pub(crate) const TREE: &str = "\
Examples:
  linchpin tree -n shop
  linchpin tree rd/migrate -n shop                    one object, and what is under it
  linchpin tree -A --unmet --watch
  linchpin tree -n shop -l team=web -o name";

pub(crate) const GRAPH: &str = "\
Examples:
  linchpin graph -n shop | dot -Tpng > shop.png
  linchpin graph -n shop -o svg > shop.svg
  linchpin graph configmap/shop/db --needed-by -o mermaid";

pub(crate) const EXPLAIN: &str = "\
Examples:
  linchpin explain rd/migrate -n shop
  linchpin explain deployment/shop/web        why it is not ready, and who waits for it
  linchpin explain ab shop -n shop -o json";

pub(crate) const RERUN: &str = "\
Examples:
  linchpin rerun rd/web -n shop
  linchpin rerun rd/web -n shop --step seed        one of its actions";

pub(crate) const PROCEED: &str = "\
Examples:
  linchpin proceed rd/web -n shop        past the only dependency that is not met
  linchpin proceed rd/web -n shop --gate db";

pub(crate) const REFRESH: &str = "\
Examples:
  linchpin refresh rd/web -n shop";

pub(crate) const SUSPEND: &str = "\
Examples:
  linchpin suspend ab/shop -n shop";

pub(crate) const RESUME: &str = "\
Examples:
  linchpin resume ab/shop -n shop";

pub(crate) const ROLLBACK: &str = "\
Examples:
  linchpin rollback ab/shop -n shop --to 2
  linchpin rollback ab/shop -n shop --undo        deploy the spec again";

pub(crate) const RBAC: &str = "\
Examples:
  linchpin rbac -f shop.yaml | kubectl apply -f -
  linchpin rbac -f shop.yaml --check
  linchpin rbac -f shop.yaml --check -o yaml | kubectl apply -f -
  linchpin rbac --operator --tenant shop              what the operator itself may do";

pub(crate) const PLAN: &str = "\
Examples:
  linchpin plan -f deploy/
  linchpin plan -f syncs.yaml --context staging       what is in the cluster counts too
  linchpin plan -f syncs.yaml --fetch                 what http and oci sources hold too";

#[cfg(feature = "local")]
pub(crate) const LOCAL: &str = "\
Examples:
  linchpin local up                                   a real Kubernetes on this machine
  linchpin local up --node                            with a real node (root)
  linchpin local load target/linchpin.tar             give the node an image
  linchpin local kubectl -- get pods -A
  linchpin local down";

#[cfg(feature = "local")]
pub(crate) const DEMO: &str = "\
Examples:
  linchpin demo
  LOCAL=0 linchpin demo                               on the cluster of KUBECONFIG";

pub(crate) const COMPLETION: &str = "\
Examples:
  source <(linchpin completion bash)
  linchpin completion zsh > \"${fpath[1]}/_linchpin\"";

pub(crate) const MAN: &str = "\
Examples:
  linchpin man | man -l -
  linchpin man --out /usr/local/share/man/man1";

pub(crate) const VERSION: &str = "\
Examples:
  linchpin version";
