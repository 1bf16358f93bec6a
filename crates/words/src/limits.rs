//! The one table of limits.
//!
//! Everything that a user, an object or a foreign server can make grow has its bound here, with the reason for its
//! size. Schemas, parsers, the engine and the rim read it; no other file invents a bound for the same thing. Each
//! limit is tested at the limit, one over it and a hundred times over it, where it is enforced.

/// Makes constants, and the table of them, from lines `NAME: type = value, "why"`.
macro_rules! limits {
    ($($name:ident: $type:ty = $value:expr, $why:literal;)*) => {
        $(#[doc = $why] pub const $name: $type = $value;)*

        /// Name, size and reason of every limit, for documentation.
        pub const TABLE: &[(&str, u64, &str)] = &[$((stringify!($name), $value as u64, $why),)*];
    };
}

limits! {
    // Lists in specs. Sized so that the schema rules walking them stay inside the API server's cost budget.
    DEPENDENCIES: usize = 256, "Dependencies of one object: far more than a person can follow, few enough to judge in microseconds.";
    ACTIONS: usize = 256, "Actions of one object, for the same reason; larger work belongs in a DependencyGroup or AppBundle.";
    GROUPS: usize = 64, "Groups of one DependencyGroup: every pair of them is compared at admission.";
    GROUP_DEPENDENCIES: usize = 128, "Dependencies of one group: a group is one phase of a whole.";
    GROUP_ACTIONS: usize = 64, "Actions of one group: their names are compared pairwise, for every group.";
    COMPONENTS: usize = 100, "Components of one group of an AppBundle: sync waves leave a hundred numbers to each group.";
    TEMPLATES: usize = 64, "Objects of one component that are written in the bundle itself.";
    BUNDLE_OBJECTS: usize = 1_000, "Objects of one AppBundle: each is a line in the inventory, and all lines live in one status.";
    BUNDLE_REQUIRES: usize = 64, "What a whole AppBundle waits for.";
    GROUP_REQUIRES: usize = 16, "What one group of an AppBundle waits for.";
    COMPONENT_REQUIRES: usize = 6, "What one component waits for: there may be thousands of components, and each entry is checked at admission.";
    IGNORE_FIELDS: usize = 16, "Fields of one component that others may change.";
    COMPONENT_ORDER: u32 = 99, "The order of a component: at 100 its sync wave would be that of the next group.";
    GROUP_ORDER: u32 = 1_000_000, "The order of a group: a hundred times this is still a sync wave that Argo CD can read.";
    REVISIONS: usize = 10, "Revisions kept of one AppBundle: each holds a whole spec.";
    PORCH_PACKAGES: usize = 64, "Packages of one Porch Repository listed in one status; the rest are counted.";
    PORCH_REVISIONS: usize = 8, "Published revisions of one package listed in one status: the newest.";
    CHANGES: usize = 64, "Changes listed in one revision; the rest are counted.";
    SYNC_OBJECTS: usize = 1_000, "Objects of one Sync: each is a line in the inventory, and all lines live in one status.";
    SYNC_INLINE: usize = 500, "Objects that are written in a Sync itself: it must fit into the store.";
    SYNC_DEPENDENCIES: usize = 64, "Dependencies of one Sync: its rules are checked for each of them at admission.";
    SYNC_EXPORTS: usize = 32, "Exports of one Sync: each is judged in every turn.";
    SYNC_PROVIDES: usize = 32, "Capabilities that one Sync provides.";
    SYNC_RESOURCES: usize = 200, "Objects of one Sync listed in its status, those that are not settled first; the rest are counted.";
    SYNC_STATUS: usize = 512 << 10, "Status and journal of one Sync together: the store takes an object of one and a half megabytes, with all that others write to it.";
    COMPARATORS: usize = 8, "Comparisons in one version range.";
    RANGE: usize = 256, "A version range.";
    VERSION: usize = 128, "A version: the longest tag that registries take.";
    WAITING_ON: usize = 64, "What a Sync waits for, directly and through others, as listed in its status.";
    HELD_BY: usize = 16, "Those that hold a Sync, as listed in its status; the rest are counted.";
    CLAIMS: usize = 256, "Syncs that depend on one that is being deleted, as far as they are looked at: the first of them hold it already.";
    CAPABILITIES: usize = 256, "Capability objects of a cluster, the first by name: all of them are looked through for each name that a Sync needs.";
    GLOBAL_RULES: usize = 32, "Rules that are imposed on all Syncs: each is one more gate.";
    GLOBAL_EXEMPT: usize = 64, "Syncs that a global rule leaves alone, as listed in its status; the rest are counted.";
    GLOBAL_EXEMPTIONS: usize = 64, "Namespaces or Syncs that a global rule leaves alone.";
    CONDITIONS: usize = 16, "Conditions on one dependency: more is better said as one expression.";
    AFTER: usize = 64, "Names in one `after` or `dependsOn`.";
    VALUES_FROM: usize = 16, "Sources of values: each is a read object.";
    ON_FAILURE: usize = 16, "Reactions to a failure: each is an event or a word in status.";
    COMMAND: usize = 64, "Words of one command.";
    MATCH_LABELS: usize = 32, "Labels in one selector.";
    MATCH_VALUES: usize = 32, "Values of one selector expression.";
    BOOT_ENTRIES: usize = 64, "Entries of one BootDependency: each may be an init container of every pod.";
    BOOT_SERIES: usize = 5_000, "BootDependencies with metrics of their own; the rest are counted.";
    BOOT_MEMORY: usize = 16 << 20, "Bytes that the webhooks keep of the BootDependencies of one namespace: thousands of them, and no flood of one tenant's.";
    BOOT_WORKLOADS: usize = 64, "Workloads listed in one BootDependency's status; the rest are counted.";
    IMPERSONATED_GROUPS: usize = 32, "Groups impersonated in another cluster: each is a header.";

    // Names and other short texts, in bytes.
    LABEL: usize = 63, "A DNS label: names of dependencies, actions, groups and namespaces.";
    COMPONENT_PATH: usize = 127, "A component with its group: two labels and a slash.";
    NAME: usize = 253, "A DNS subdomain: what Kubernetes allows as an object's name.";
    GROUP_NAME: usize = 253, "An API group.";
    REFERENCE: usize = 634, "A reference: kind (63), version (63) and group (253) with their dots, a slash and a name (253).";
    DURATION: usize = 32, "A duration's text: the longest sensible one has 25 characters.";
    STATE: usize = 63, "A state word.";
    JSON_PATH: usize = 256, "A JSONPath: deeper paths than these are mistakes.";
    OPERATOR: usize = 16, "A comparison's name.";
    CEL: usize = 1024, "A CEL expression: its cost is bounded by its length and its nesting.";
    COMMAND_WORD: usize = 4096, "One word of a command.";
    USER_MESSAGE: usize = 1024, "A message that the user gives for events and status: events take no more.";
    MESSAGE: usize = 1024, "A message that we show: events take no more, and status stays small.";
    EDGE_BYTES: usize = 96 << 10, "The edges of one object in its status, as one text: what is still open comes first.";
    FIELD_MANAGER: usize = 128, "A field manager: Kubernetes takes no more.";
    PERIOD_SECONDS: u64 = 10 * 365 * 24 * 3600, "A duration: ten years is longer than any cluster lives, and far from overflowing a timestamp.";

    PROBE_PATH: usize = 2048, "The path of a probe, with its query.";
    PROBE_METHOD: usize = 32, "The method of a probe.";
    PROBE_HEADER_NAME: usize = 128, "The name of a header of a probe.";
    PROBE_HEADER_VALUE: usize = 4096, "The value of a header of a probe: a token with room to spare.";
    PROBE_LIST: usize = 32, "Headers, and statuses, of one probe.";
    PROBE_HEAD: usize = 16 << 10, "What is read of an answer to a probe: its head, never its body.";
    PROBE_ADDRESSES: usize = 8, "Addresses of one name that a probe tries.";
    PROBE_MILLISECONDS: u64 = 3_000, "How long a probe may take in all: each holds a thread.";
    PROBE_THREADS: usize = 16, "Probes under way at once.";
    PROBE_NAMESPACE_THREADS: usize = 4, "Probes of one namespace under way at once: dead targets of one tenant delay nobody else.";
    PROBES: usize = 256, "Different probes of one namespace.";
    PROBE_ROOTS: usize = 96 << 10, "A CA bundle of a probe: it must fit into an environment variable.";

    PROVIDER_ANSWER: usize = 4 << 20, "One answer of an adapter's provider: room for every employee of the largest employer.";
    DEMO_ITEMS: usize = 20_000, "Items that the demo provider keeps: it has only memory.";

    EXEC_SECONDS: u64 = 3600, "How long a command may run: each holds a connection and one of its namespace's places. What takes longer is a Job.";

    // Templates and documents, in bytes unless said otherwise.
    TEMPLATE_SOURCE: usize = 64 << 10, "A template's text: it is parsed whenever its object changes.";
    TEMPLATE_OUTPUT: usize = 1 << 20, "What a template may produce: the API server takes no larger object.";
    TEMPLATE_FIELDS: usize = 64, "Names in one chain of fields, `.a.b.c`: no object is deeper.";
    TEMPLATE_STEPS: u64 = 200_000, "Steps of one rendering: one for each node, more for costly functions; far under a second.";
    TEMPLATE_VALUES: usize = 8 << 20, "Bytes of values that one rendering may make on the way to its output.";
    TEMPLATE_DEPTH: usize = 200, "How deep blocks, parentheses and calls may be nested while a template runs: they use the stack.";
    TEMPLATE_CALLS: usize = 100, "How deep `template` calls may be nested.";
    TEMPLATE_PATTERN: usize = 4 << 10, "A regular expression in a template.";
    TEMPLATE_PATTERN_COMPILED: usize = 64 << 10, "What a regular expression in a template may take once compiled.";
    VALUE_DEPTH: usize = 128, "How deep a value may be nested to be printed, compared or encoded.";
    YAML_SOURCE: usize = 4 << 20, "A text that is read as YAML documents.";
    DOCUMENTS: usize = 1_000, "Documents in one text, empty ones included.";
    DOCUMENT_DEPTH: usize = 64, "How deep one YAML document may be nested.";
    DOCUMENT_NODES: usize = 100_000, "Values in all YAML documents of one text: each takes far more memory than its text.";
    NESTING: usize = 64, "Depth of templates, expressions, paths and documents: parsers use the stack.";
    PATCH_SOURCE: usize = 64 << 10, "A patch's text: it is a template too.";
    RENDERED_OBJECTS: usize = 500, "Objects of one rendered action: each is a write and a line in the inventory.";
    DOCUMENT: usize = 1 << 20, "One rendered object, or one patch: the API server takes no larger request.";

    // Conditions: what one judgement may use. Counted, not timed, so that the same data gives the same answer.
    CEL_LOOPS: usize = 2, "Loops inside loops in an expression: each level multiplies the work.";
    CEL_LIST: usize = 10_000, "Elements that a single loop may walk; a longer list is left undecided.";
    CEL_LIST_NESTED: usize = 200, "Elements that each of two nested loops may walk.";
    TURN_SHARE: u64 = 50_000, "Steps after which a turn postpones further evaluations to the next turn, behind the objects of other namespaces: a few milliseconds.";
    TURN_STEPS: u64 = 1_000_000, "Steps of what cannot be divided: compiling one object, rendering one action.";
    TURN_OBJECTS: usize = 50_000, "Objects that the selectors of one object may find in all: each is looked at in every turn.";
    CEL_STEPS: u64 = 200_000, "Steps of one evaluation: it cannot be divided between turns.";
    CEL_BYTES: u64 = 8 << 20, "Bytes of values that one evaluation may make: stops texts that double themselves.";
    PATH_STEPS: usize = 64, "Steps of a JSONPath.";
    PATH_INDEX: i64 = 100_000, "An index in a JSONPath: no list in an object is longer.";
    PATH_UNION: usize = 32, "Entries between two brackets of a JSONPath.";
    PATH_RESULTS: usize = 10_000, "Values that a JSONPath may find.";
    PATH_VISITS: usize = 1_000_000, "Values that a JSONPath may look at.";
    PATTERN: usize = 512, "A regular expression.";
    PATTERN_COMPILED: usize = 256 << 10, "What a regular expression may take once compiled.";
    CHOICES: usize = 256, "Values of `in` and `notIn`.";
    VALUE_PARTS: usize = 1024, "Scalars, lists and objects in the value of one condition.";

    // What is observed.
    SELECTED: usize = 10_000, "Objects that one selector may match: beyond that the count is all that is said.";
    PROJECTION: usize = 256 << 10, "What is kept of one observed object: more shows as `TooLarge`.";
    ANSWER: usize = 32 << 20, "One answer of an API server: a page of a list; pages that are larger are asked for in smaller parts.";
    REMOTE_ANSWER: usize = 8 << 20, "One answer of a server that a user names: room for the largest object there is.";
    REMOTE_RATE: usize = 8 << 20, "Bytes a second that are read of all watches and lists of one server that a user names, each event as a kibibyte at least: reading costs time.";
    REFUSAL: usize = 1 << 20, "An answer that is an error: a reason and a few field paths.";
    WATCH_LINE: usize = 8 << 20, "One line of a watch: an object is 1.5 MiB at most, up to five times that as quoted text.";
    LIST_BYTES: usize = 1 << 30, "All pages of one list together: they are read one after another, and only what is of interest is kept.";
    LIST_OBJECTS: usize = 100_000, "Objects of one list that something is kept of, if only the name.";
    LIST_PAGES: usize = 10_000, "Pages of one list: a server that always has one more is not believed.";
    LIST_SECONDS: u64 = 300, "How long all pages of one list may take.";
    DISCOVERED_GROUPS: usize = 1_000, "Groups that a server without aggregated discovery is asked for, one by one.";
    DISCOVERED_VERSIONS: usize = 32, "Versions of one group that are asked for, one by one.";
    MISSED_GROUPS: usize = 1_000, "Groups that are asked for again at a time because somebody names one that is not served.";
    NAMESPACE_WATCHES: usize = 5_000, "Watches that the accounts of one namespace have open together, those of the accounts themselves included: each is a stream and a task.";
    NAMESPACE_OBJECTS: usize = 20_000, "Observed objects that are kept for the accounts of one namespace: two selectors at their limit.";
    NAMESPACE_BYTES: usize = 64 << 20, "What those objects take in memory: the operator has a few hundred megabytes for everybody.";
    NAMESPACE_QUESTIONS: usize = 10_000, "Rights, kinds and versions that the accounts of one namespace ask for: each is a task that asks again now and then.";
    JOURNAL_BYTES: usize = 2 << 20, "A journal's text: the API server stores no larger object.";
    JOURNAL_ENTRIES: usize = 20_000, "Rows, records and what they list in one journal: more than any that fits into an object; each takes far more memory than its text.";
    JOURNAL_TEXT: usize = 4 << 10, "A name or uid in a journal: the longest names are a few references long.";

    // What is fetched for a Sync. Counted while it is read; what a header says is not believed.
    SOURCE_DOWNLOAD: usize = 10 << 20, "What is downloaded of one source: manifests are text, and text packs well.";
    SOURCE_UNPACKED: u64 = 50 << 20, "All bytes of one unpacked archive, also of what is skipped in it.";
    SOURCE_ENTRIES: usize = 10_000, "Entries of one archive, of whatever kind.";
    SOURCE_MANIFESTS: usize = 8 << 20, "The manifests kept of one source: each namespace has a budget for them.";
    SOURCE_PATHS: usize = 32, "Paths of one source.";
    SOURCE_STRIP: u32 = 8, "Leading directories that are taken off the names in an archive.";
    SOURCE_REDIRECTS: usize = 3, "Redirects followed for one request: forges and registries send to their storage, once or twice.";
    SOURCE_URL: usize = 2048, "A URL: servers take no longer ones.";
    FETCHES: usize = 4, "Sources fetched at once, one of a namespace: a slow server holds up its own namespace alone.";
    SOURCE_NAMESPACE_BYTES: usize = 64 << 20, "Manifests kept in memory for one namespace.";
    SOURCE_BYTES: usize = 256 << 20, "Manifests kept in memory in all.";
    ENTRY_NAME: usize = 1024, "A name in an archive, in bytes.";
    ENTRY_DEPTH: usize = 32, "Directories in a name in an archive.";
    ENTRY_EXTENSION: u64 = 64 << 10, "An extended header in a tar: a few names and times.";
    REGISTRY_MANIFEST: usize = 1 << 20, "A manifest of a registry: a list of layers.";
    REGISTRY_TOKEN: usize = 64 << 10, "The answer of a registry's token service.";
    KUBECONFIG: usize = 256 << 10, "A kubeconfig for another cluster.";
    BLOCKERS: usize = 16, "Blockers listed in one status: the first ones are listed, the rest are counted.";
    CHAIN: usize = 16, "Links of a chain of causes shown in one status.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_size_and_a_reason() {
        assert!(TABLE.len() > 30);
        for (name, size, why) in TABLE {
            assert!(*size > 0, "{name}");
            assert!(why.ends_with('.') && why.len() > 10, "{name} says why");
        }
    }
}
