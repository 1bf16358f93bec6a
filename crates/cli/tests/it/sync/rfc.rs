//! Every sentence of the RFC that promises something, with the tests that hold us to it. A test that is renamed or taken away
//! is missed here.

/// Where the tests are, by the word that the table has for it.
const FILES: [(&str, &str); 11] = [
    ("gates", "crates/doors/tests/it/sync/gates.rs"),
    ("doors", "crates/doors/tests/it/sync.rs"),
    ("contract", "crates/doors/tests/it/sync/contract.rs"),
    ("seeded", "crates/engine/tests/it/keeping/seeded.rs"),
    ("circles", "crates/engine/tests/it/keeping/circles.rs"),
    ("cluster", "crates/cli/tests/it/sync.rs"),
    ("between", "crates/cli/tests/it/sync/between.rs"),
    ("fetched", "crates/cli/tests/it/sync/fetched.rs"),
    ("examples", "crates/cli/tests/it/sync/examples.rs"),
    ("random", "crates/cli/tests/it/sync/random.rs"),
    ("scale", "crates/cli/tests/it/sync/scale.rs"),
];

/// What the RFC says, and where it is tried.
const PROMISES: [(&str, &[&str]); 38] = [
    (
        "relations between Syncs, in which one Sync depend on another",
        &["cluster::syncs_are_applied_in_dependency_first_order_and_deleted_in_reverse"],
    ),
    (
        "either by its definition (e.g., a Deployment that refers to a Secret), or in its operation (a web service needs a database)",
        &[
            "gates::the_rfcs_sentences_are_said",
            "gates::before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers",
        ],
    ),
    (
        "careful ordering can mean objects reach a ready state more efficiently (e.g., with fewer retries)",
        &["random::random_sets_are_applied_dependency_first_and_deleted_in_reverse_and_rest"],
    ),
    ("this package says it depends on something that isn't present", &["gates::the_rfcs_sentences_are_said"]),
    (
        "[DEFINITION] I need the custom resource definitions to have been applied before I can create my custom resources",
        &[
            "doors::i_need_the_custom_resource_definitions_to_have_been_applied_before_i_can_create_my_custom_resources",
            "cluster::a_source_is_followed_ordered_inside_pruned_and_taken_away_in_reverse",
        ],
    ),
    (
        "[AVAILABILITY] My app will start more quickly and smoothly if service A is up and running before service B is started",
        &[
            "examples::every_example_comes_up_with_its_own_rights_and_goes_down_again",
            "gates::a_soft_dependency_is_waited_for_with_patience_and_then_broken",
        ],
    ),
    (
        "updating service B is going to restart it, so it's best if service A is known to be running when that happens",
        &["gates::adding_a_dependency_to_a_running_sync_writes_nothing_and_gates_the_next_transition"],
    ),
    (
        "[GLOBAL] I need to make sure Istio mutating webhook is registered and running before any pods are created",
        &["between::a_rule_on_a_webhook_leaves_alone_who_answers_it_in_whichever_sync_that_is"],
    ),
    (
        "the dependence is imposed on all other syncs -- before any pods -- which suggests it needs to be outside any individual Sync declaration",
        &[
            "between::a_rule_holds_all_that_make_pods_but_what_it_needs_itself_and_a_capability_is_never_installed",
            "gates::a_global_rule_is_imposed_on_all_syncs_that_make_pods",
        ],
    ),
    (
        "[VERSION] I need to update the database for my app before I can update the web service",
        &["gates::i_need_to_update_the_database_for_my_app_before_i_can_update_the_web_service"],
    ),
    (
        "[ENVIRONMENT] I need Tekton to be running in the cluster for my pipeline resources to be useful, but I can't or don't want to install it just for my use",
        &[
            "between::a_rule_holds_all_that_make_pods_but_what_it_needs_itself_and_a_capability_is_never_installed",
            "gates::a_capability_is_an_object_that_is_ready_or_what_a_sync_of_the_namespace_provides",
        ],
    ),
    (
        "the secret must exist before the pods started by the deployment can run. This is hard dependence",
        &["gates::the_rfcs_sentences_are_said"],
    ),
    (
        "it is OK if service B starts after service A, or can reach a ready state after service A. This is soft dependence",
        &["gates::a_soft_dependency_is_waited_for_with_patience_and_then_broken"],
    ),
    (
        "soft dependence can be broken if necessary to satisfy hard dependence",
        &[
            "between::a_circle_is_named_in_its_members_soft_arcs_give_way_and_nobody_else_is_held",
            "circles::s2_a_circle_with_a_soft_arc_is_admitted_and_a_hard_one_stops_nobody_else",
        ],
    ),
    (
        "A dependence is always in the form of a transition relying on a state",
        &["seeded::a1_to_a6_s1_and_l1_hold_in_every_story"],
    ),
    (
        "it says what the controller needs to observe about the dependency before it acts",
        &["seeded::a1_to_a6_s1_and_l1_hold_in_every_story"],
    ),
    (
        "Defined <-- Available: the happy path is to wait for the dependency to exist before applying the dependent",
        &["examples::every_example_comes_up_with_its_own_rights_and_goes_down_again"],
    ),
    (
        "Available <-- Available: This is a soft dependence, so a best effort is fine",
        &["gates::a_soft_dependency_is_waited_for_with_patience_and_then_broken"],
    ),
    (
        "Completed <-- Defined: applying the dependent must be delayed until the condition is met",
        &["gates::completion_is_a_one_way_gate_once_it_is_reached_the_dependency_is_fulfilled"],
    ),
    (
        "completion is a one-way gate -- once it is reached, the dependency is fulfilled",
        &["gates::completion_is_a_one_way_gate_once_it_is_reached_the_dependency_is_fulfilled"],
    ),
    (
        "the completion may be something other than a process exiting -- it could be an object that gets created or updated as part of a service starting up",
        &["contract::it_could_be_an_object_that_gets_created_or_updated_as_part_of_a_service_starting_up"],
    ),
    (
        "Available <-- Defined: The dependent needs the dependency to be running for it to be created correctly",
        &["gates::before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers"],
    ),
    (
        "there can only be a best effort mechanism for meeting it -- the dependency can transition out of a ready state",
        &[
            "seeded::a1_to_a6_s1_and_l1_hold_in_every_story",
            "gates::before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers",
        ],
    ),
    (
        "Before the sync controller applies configuration, it checks the requirements, and defers the sync if they are not met",
        &["gates::before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers"],
    ),
    (
        "In aggregate, this results in syncs being applied in dependency-first order",
        &[
            "cluster::syncs_are_applied_in_dependency_first_order_and_deleted_in_reverse",
            "random::random_sets_are_applied_dependency_first_and_deleted_in_reverse_and_rest",
            "scale::a_chain_and_a_lattice_are_applied_in_order_and_one_circle_stops_nobody_else",
        ],
    ),
    (
        "as a dependency you don't know that you'll be dependended upon",
        &["between::dependents_go_first_whatever_the_order_of_two_deletions_and_protection_holds"],
    ),
    (
        "the glue is at \"link\" time, when you demonstrate that all the dependent's needs are met by something (in principle)",
        &[
            "gates::before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers",
            "fetched::plan_fetches",
        ],
    ),
    (
        "for a given configuration you should be able to tell whether all requirements are met",
        &["fetched::plan_fetches"],
    ),
    (
        "a major concern is how to retrofit dependencies to existing chunks of configuration",
        &[
            "examples::retrofit",
            "gates::adding_a_dependency_to_a_running_sync_writes_nothing_and_gates_the_next_transition",
        ],
    ),
    (
        "some of the time, the dependencies are just for the happy path; so doing without is OK - otherwise, it can be gradual",
        &["examples::retrofit", "doors::a_sync_without_dependencies_is_complete"],
    ),
    (
        "the relation must break if the object is no longer present",
        &[
            "gates::the_relation_must_break_if_the_export_is_no_longer_present",
            "gates::a_capability_is_an_object_that_is_ready_or_what_a_sync_of_the_namespace_provides",
        ],
    ),
    (
        "the dependency is not provided by another Sync, but is present in the cluster by some other means",
        &["doors::an_object_outside_of_the_set_holds_only_what_names_it"],
    ),
    (
        "you might want just an overall ready signal from another package",
        &["gates::before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers"],
    ),
    (
        "refer to an object from another Sync without knowing the object's runtime name",
        &[
            "contract::an_export_is_named_beside_the_sync_or_in_it_and_not_twice",
            "doors::an_export_is_judged_by_its_provider_and_one_without_an_object_is_told",
        ],
    ),
    (
        "versioned dependencies if you are dealing with Syncs, since they have the revision recorded",
        &["gates::where_dependent_and_dependency_have_one_source_the_very_revision_must_be_applied"],
    ),
    (
        "Internal dependencies need special handling, since they will alter how syncing is done, rather than whether it is done or not",
        &["doors::internal_dependencies_need_special_handling_since_they_alter_how_syncing_is_done"],
    ),
    (
        "before they are created, service B better be at that version, or creation should fail",
        &["gates::i_need_to_update_the_database_for_my_app_before_i_can_update_the_web_service"],
    ),
    (
        "Sync A records that it's waiting on Sync B and C; if a Sync sees its own name in that list, there's a cycle",
        &["between::a_circle_is_named_in_its_members_soft_arcs_give_way_and_nobody_else_is_held"],
    ),
];

#[test]
fn every_promise_of_the_rfc_is_held_by_a_test_that_is_there() {
    crate::promises::are_held(&FILES, &PROMISES);
}
