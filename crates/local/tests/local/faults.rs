//! Parts of a cluster killed by name and by strangers.

use std::{fs, time::Duration};

use linchpin_local::{Cluster, ClusterOptions, Component, Error, down};

use crate::support::{assert_gone, fresh_path, kill, kubectl, processes, traces};

#[test]
fn every_part_can_be_killed_and_started_again_and_data_survives() {
    let cluster = Cluster::start(&ClusterOptions::default()).unwrap();
    kubectl(&cluster, &["create", "configmap", "kept"]);
    for component in
        [Component::Etcd, Component::ApiServer, Component::ControllerManager, Component::Scheduler]
    {
        let before = cluster.pid(component).unwrap();
        cluster.kill(component).unwrap();
        assert_eq!(cluster.pid(component), None);
        assert!(matches!(cluster.kill(component), Err(Error::ComponentDown { .. })));
        cluster.start_component(component).unwrap();
        assert_ne!(cluster.pid(component).unwrap(), before);
        assert!(matches!(cluster.start_component(component), Err(Error::ComponentUp { .. })));
    }
    cluster.wait_ready().unwrap();
    kubectl(&cluster, &["get", "configmap", "kept"]);
    assert!(matches!(cluster.kill(Component::Kubelet), Err(Error::NoSuchComponent { .. })));

    cluster.pause(Component::ApiServer).unwrap();
    assert!(!cluster.is_ready());
    cluster.resume(Component::ApiServer).unwrap();
    cluster.wait_ready().unwrap();

    let dir = cluster.dir().to_owned();
    let keeper = processes(&dir).into_iter().find(|(_, command)| command.contains("keeper watch")).unwrap();
    kill(keeper.0);
    cluster.stop().unwrap();
    assert_eq!(traces(&dir), Vec::<String>::new());
}

#[test]
fn a_detached_cluster_that_lost_parts_is_said_to_be_broken_and_goes_down_whole() {
    let (_parent, dir) = fresh_path();
    let options = ClusterOptions { dir: Some(dir.clone()), ..ClusterOptions::default() };
    let cluster = Cluster::start(&options).unwrap();
    let victims = [Component::ApiServer, Component::Etcd].map(|component| cluster.pid(component).unwrap());
    cluster.detach().unwrap();

    let cluster = Cluster::open(&dir).unwrap();
    assert!(cluster.is_ready());
    victims.into_iter().for_each(kill);
    while cluster.pid(Component::Etcd).is_some() || cluster.pid(Component::ApiServer).is_some() {}
    assert!(!cluster.is_ready());
    let error = Cluster::start(&options).unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    assert!(error.to_string().contains("etcd") && error.to_string().contains("kube-apiserver"), "{error}");

    assert!(down(&dir).unwrap());
    assert_eq!(traces(&dir), Vec::<String>::new());
    assert!(!down(&dir).unwrap());
    assert!(matches!(Cluster::open(&dir), Err(Error::NotRunning { .. })));
}

#[test]
fn a_cluster_whose_files_were_deleted_under_it_goes_down_too() {
    let (_parent, dir) = fresh_path();
    let options = ClusterOptions { dir: Some(dir.clone()), ..ClusterOptions::default() };
    let options = options.without(Component::ControllerManager).without(Component::Scheduler);
    Cluster::start(&options).unwrap().detach().unwrap();
    fs::remove_dir_all(&dir).unwrap();
    assert!(!processes(&dir).is_empty());
    down(&dir).unwrap();
    assert_gone(&dir, Duration::ZERO);
}
