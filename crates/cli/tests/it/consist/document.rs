//! Every sentence, method, option, finalizer and annotation of the document on ResourceConsist, with the tests that hold us to
//! it. A test that is renamed or taken away is missed here.

/// Where the tests are, by the word that the table has for it.
const FILES: [(&str, &str); 24] = [
    ("adapter", "crates/consist/src/adapter.rs"),
    ("options", "crates/consist/src/options.rs"),
    ("state", "crates/consist/src/state.rs"),
    ("pod", "crates/consist/src/pod.rs"),
    ("marks", "crates/consist/src/marks.rs"),
    ("answer", "crates/consist/src/answer.rs"),
    ("model", "crates/consist/tests/it/model.rs"),
    ("troubles", "crates/consist/tests/it/troubles.rs"),
    ("admission", "crates/consist/tests/it/admission.rs"),
    ("step", "crates/consist/tests/it/lifecycle.rs"),
    ("config", "crates/adapters/src/config.rs"),
    ("provider", "crates/adapters/tests/it/provider.rs"),
    ("far", "crates/adapters/tests/it/remote.rs"),
    ("slb", "crates/adapters/tests/it/alibabacloudslb.rs"),
    ("shown", "crates/adapters/tests/it/tutorial.rs"),
    ("crew", "crates/operator/src/consist/crew.rs"),
    ("acts", "crates/operator/src/consist/acts.rs"),
    ("index", "crates/operator/src/consist/cluster_view/index/tests.rs"),
    ("adapters", "crates/cli/tests/it/consist/adapters.rs"),
    ("kinds", "crates/cli/tests/it/consist/kinds.rs"),
    ("lifecycle", "crates/cli/tests/it/consist/lifecycle.rs"),
    ("webhooks", "crates/cli/tests/it/consist/webhooks.rs"),
    ("tutorial", "crates/cli/tests/it/consist/tutorial.rs"),
    ("load", "crates/cli/tests/it/consist/load.rs"),
];

const KEPT: &str = "adapters::a_service_and_its_pods_are_kept_at_the_provider_with_the_documents_marks_until_nothing_remains";
const ANY_KIND: &str =
    "kinds::employers_and_employees_may_be_of_any_kind_and_are_marked_as_their_adapter_says";
const ONE_TO_ONE: &str = "far::the_documents_methods_are_asked_one_to_one_with_what_they_are_about";
const OPERATION: &str =
    "lifecycle::an_operation_waits_until_the_pod_is_out_of_traffic_and_completes_when_it_is_back";
const DRAINED: &str = "webhooks::pods_are_drained_before_a_deletion_or_an_eviction_is_let_through";
const TUTORIAL: &str = "tutorial::the_tutorials_controllers_keep_a_directory_as_the_pods_are";
const DEMO: &str = "provider::demo_service_status_and_demo_pod_status_are_seen_at_the_provider";
const HELD: &str = "slb::pods_are_held_by_what_the_load_balancer_says_and_nothing_is_written";

/// What the document says, and where it is tried.
const PROMISES: [(&str, &[&str]); 54] = [
    (
        "Making a customized controller can be realized easily, and offering the ability of controllers following PodOpsLifecycle",
        &[TUTORIAL, OPERATION],
    ),
    (
        "The only thing users need to do to realize a customized controller is writing an adapter implementing ReconcileAdapter",
        &[TUTORIAL, "shown::the_tutorial_shows_the_controllers_as_they_are_and_the_first_is_short"],
    ),
    ("A customized controller can be started by command like \"resource-consist enable\"", &[KEPT, TUTORIAL]),
    ("Employer can be any kind, and CRD is of course can be used as Employer", &[ANY_KIND]),
    ("Employee can be any kind, and CRD is of course can be used as Employee", &[ANY_KIND]),
    (
        "If an adapter implementing ReconcileAdapter and following PodOpsLifecycle, the Employee should be Pod",
        &[ANY_KIND],
    ),
    // ReconcileOptions
    (
        "max concurrent reconcile: 5 and DefaultControllerRateLimiter() will be used if ReconcileOptions not implemented",
        &["options::reconcile_options_default_to_five_workers_and_the_default_rate_limiter"],
    ),
    (
        "ReconcileOptions.GetRateLimiter",
        &[
            "options::pauses_double_from_the_base_to_the_smaller_cap",
            "options::retries_come_in_a_burst_and_then_at_the_rate_of_the_bucket",
        ],
    ),
    (
        "ReconcileOptions.GetMaxConcurrentReconciles",
        &["acts::so_many_employers_and_no_more_are_in_the_providers_hands_at_a_time"],
    ),
    // ReconcileWatchOptions
    (
        "default employer: Service, default employee: Pod",
        &["adapter::new_employer_and_new_employee_are_service_and_pod_unless_said_otherwise"],
    ),
    (
        "different Predicates make an employer won't be reconciled by more than one controller so that LifecycleFinalizer won't be solved incorrectly",
        &["troubles::an_employer_that_another_adapter_holds_is_left_alone_and_told_of", ANY_KIND],
    ),
    (
        "ReconcileWatchOptions.NewEmployer, NewEmployee",
        &["adapter::new_employer_and_new_employee_are_service_and_pod_unless_said_otherwise", ANY_KIND],
    ),
    (
        "ReconcileWatchOptions.EmployerEventHandler, EmployeeEventHandler",
        &["index::what_is_found_is_what_asking_everybody_finds", KEPT],
    ),
    (
        "ReconcileWatchOptions.EmployerPredicates, EmployeePredicates",
        &["options::reconcile_watch_options_default_to_employers_with_the_control_label_and_all_employees"],
    ),
    // ReconcileLifecycleOptions
    (
        "If not implemented, the two options would be FollowPodOpsLifeCycle: true and NeedRecordEmployees: false",
        &[
            "options::reconcile_lifecycle_options_default_to_following_and_not_recording",
            "config::every_adapter_can_be_opened_by_its_name_and_has_the_documents_defaults",
        ],
    ),
    (
        "ReconcileLifecycleOptions.FollowPodOpsLifeCycle",
        &[ANY_KIND, "crew::what_an_administrator_says_wins_over_the_adapter"],
    ),
    (
        "ReconcileLifecycleOptions.NeedRecordEmployees",
        &[
            "marks::need_record_employees_writes_sorted_names_and_an_empty_text_is_no_name",
            "troubles::need_record_employees_stops_at_its_limit_and_says_so_once",
            ANY_KIND,
        ],
    ),
    ("employees' LifecycleFinalizer conditions need to be Recorded/Erased to employer's anno", &[ANY_KIND]),
    // ReconcileAdapter
    (
        "ReconcileAdapter.GetControllerName",
        &["config::every_adapter_can_be_opened_by_its_name_and_has_the_documents_defaults", ONE_TO_ONE],
    ),
    (
        "ReconcileAdapter.GetSelectedEmployeeNames",
        &["adapter::get_selected_employee_names_follows_the_selector_and_an_empty_one_selects_nothing"],
    ),
    ("ReconcileAdapter.GetExpectedEmployer", &[ONE_TO_ONE, DEMO]),
    ("ReconcileAdapter.GetCurrentEmployer", &[ONE_TO_ONE, DEMO]),
    ("ReconcileAdapter.CreateEmployer", &[DEMO, KEPT]),
    ("ReconcileAdapter.UpdateEmployer", &["provider::drift_of_the_employer_is_mended_too"]),
    ("ReconcileAdapter.DeleteEmployer", &[DEMO, KEPT]),
    ("ReconcileAdapter.GetExpectedEmployee", &[ONE_TO_ONE, DEMO]),
    ("ReconcileAdapter.GetCurrentEmployee", &[ONE_TO_ONE, DEMO]),
    ("ReconcileAdapter.CreateEmployees", &[ONE_TO_ONE, KEPT]),
    (
        "ReconcileAdapter.UpdateEmployees",
        &["provider::drift_is_seen_at_the_next_look_and_what_a_provider_keeps_beside_is_not", KEPT],
    ),
    ("ReconcileAdapter.DeleteEmployees", &[ONE_TO_ONE, KEPT]),
    (
        "(ctx, employer, toCreates) returns ([]succeeded, []failed, error)",
        &[
            ONE_TO_ONE,
            "provider::an_item_that_is_refused_or_only_accepted_keeps_no_other_from_being_sent",
            "troubles::a_call_that_fails_makes_its_items_failed_and_is_repeated_in_a_while",
        ],
    ),
    (
        "ReconcileOptions and ReconcileWatchOptions Interfaces can be optional implemented",
        &["options::reconcile_options_default_to_five_workers_and_the_default_rate_limiter", TUTORIAL],
    ),
    (
        "there is a default Predicate which filters out Services without Label \"kusionstack.io/control\": \"true\"",
        &[
            "options::reconcile_watch_options_default_to_employers_with_the_control_label_and_all_employees",
            KEPT,
        ],
    ),
    // The states.
    (
        "IEmployer.GetEmployerId, GetEmployerStatuses, EmployerEqual",
        &["state::iemployee_and_iemployer_are_matched_by_id_and_compared_by_statuses"],
    ),
    (
        "IEmployee.GetEmployeeId, GetEmployeeName, GetEmployeeStatuses, EmployeeEqual",
        &["state::iemployee_and_iemployer_are_matched_by_id_and_compared_by_statuses"],
    ),
    (
        "PodEmployeeStatuses: ip, ipv6, lifecycleReady, extraStatus",
        &["state::pod_employee_statuses_have_the_documents_names"],
    ),
    (
        "can be set by calling SetCommonPodEmployeeStatus",
        &["pod::set_common_pod_employee_status_reads_ip_ipv6_and_lifecycle_ready"],
    ),
    (
        "ExtraStatus in PodEmployeeStatuses is an interface so that adapters can implement it as they wished",
        &[DEMO, HELD],
    ),
    // PodAvailableConditions
    (
        "PodAvailableConditions is an annotation on pod, indicating what finalizer should be added to achieve service-available state",
        &[
            "marks::pod_available_conditions_are_read_and_written_as_the_document_has_them",
            "step::service_available_needs_ready_entries_finalizers_and_no_operation",
        ],
    ),
    (
        "For a pod employed by multiple employers, there will be multiple LifecycleFinalizer should be added, and PodAvailableConditions annotation will record what employers and what finalizers are",
        &[
            "admission::a_new_pod_gets_the_gate_and_an_entry_for_every_employer_and_nothing_else_changes",
            "marks::entries_stop_at_their_limit",
        ],
    ),
    (
        "Webhook will also record PodAvailableConditions in case of Pod creation to avoid Pod reaching service-available state",
        &[
            DRAINED,
            "admission::a_new_pod_gets_the_gate_and_an_entry_for_every_employer_and_nothing_else_changes",
        ],
    ),
    (
        "pod.kusionstack.io/available-conditions, {\"expectedFinalizers\": {…}}",
        &["marks::pod_available_conditions_are_read_and_written_as_the_document_has_them", KEPT],
    ),
    (
        "GenerateLifecycleFinalizerKey: Kind/namespace/name",
        &["marks::generate_lifecycle_finalizer_key_is_kind_namespace_name", KEPT],
    ),
    (
        "GenerateLifecycleFinalizer: hex(md5(employerName))[8:24]",
        &["marks::lifecycle_finalizers_are_those_of_the_original", KEPT, ANY_KIND],
    ),
    // Finalizers
    (
        "LifecycleFinalizer prefixed with \"prot.podopslifecycle.kusionstack.io\", removed in preparing period of PodOpsLifecycle and added in completing period",
        &[
            OPERATION,
            "step::operate_is_given_once_nobody_protects_the_pod_its_gate_is_closed_and_it_is_seen_out_of_traffic",
        ],
    ),
    (
        "CleanFinalizer: resource-consist.kusionstack.io/clean-<name>",
        &["marks::the_clean_finalizer_is_the_documents_and_the_later_one_where_the_name_is_too_long", KEPT],
    ),
    (
        "CleanFinalizer should be added in the first Reconcile of the resource, and be removed only when there is no more relation between Employer and Employee and during deletion",
        &["model::every_story_ends_well_killed_after_every_effect", KEPT],
    ),
    (
        "Clean finalizer will be added to Employer before everything, and all resources related to Employer will be cleaned before clean finalizer removed, so that nothing related to Employer will be remained",
        &["model::no_interleaving_with_one_fault_releases_a_pod_in_traffic_or_leaves_something_behind", KEPT],
    ),
    ("An expected LifecycleFinalizer related to Employer will be added into PodAvailableConditions", &[KEPT]),
    (
        "Get Expect/Current Employer/Employee, make diff, and do sync",
        &["answer::the_diff_is_by_id_as_the_document_says", KEPT],
    ),
    // Tutorials
    (
        "alibabacloudslb: the real server is removed from SLB before pod operation in ACK; the LB management and real server management are handled by CCM",
        &[HELD, "slb::without_a_load_balancer_nobody_has_traffic_and_a_service_that_goes_hangs_on_nothing"],
    ),
    (
        "This adapter ensures minimal traffic loss and provides a seamless experience for users",
        &["load::no_request_is_lost_whatever_happens_to_the_pods"],
    ),
    ("DemoServiceStatus{EmployerId, RemoteVIP: \"demo-remote-VIP\", RemoteVIPQPS: 100}", &[DEMO, KEPT]),
    (
        "DemoPodStatus{EmployeeId, EmployeeName, Ip, Ipv6, LifecycleReady, TrafficOn, TrafficWeight}",
        &[DEMO, KEPT],
    ),
];

#[test]
fn every_promise_of_the_document_is_held_by_a_test_that_is_there() {
    crate::promises::are_held(&FILES, &PROMISES);
}
