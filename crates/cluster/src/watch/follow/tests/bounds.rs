//! Servers that hang, or whose lists have no end: how much of the loop they may take.

use super::*;
use linchpin_words::limits;

/// Followers of a server that never answers, each in a task of its own; how many of them have asked it.
async fn silent(features: &Arc<Features>, group: &str, askers: &[&'static str]) -> usize {
    let asked = Arc::new(AtomicU32::new(0));
    for asker in askers {
        let asked = Arc::clone(&asked);
        let service = tower::service_fn(move |_: Request<Body>| {
            asked.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<Response<Answer>, Infallible>>()
        });
        let client = Client::new(service, "default");
        let follower = follower(client, Arc::clone(features), group, asker, WatchSelect::All);
        tokio::spawn(async move {
            let (_keep, mut restart) = watch::channel(0);
            follower.run(&Record::default(), &mut restart).await;
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    asked.load(Ordering::Relaxed) as usize
}

#[tokio::test(start_paused = true)]
async fn lists_that_hang_leave_first_looks_to_other_namespaces_and_other_groups() {
    let features = Arc::new(Features::default());
    assert_eq!(silent(&features, "slow.example.com", &["a"; 100]).await, 24);
    assert_eq!(silent(&features, "slow.example.com", &["b"; 100]).await, 0, "the group has its share");
    assert_eq!(silent(&features, "apps", &["a"; 100]).await, 0, "the namespace has its share");
    assert_eq!(silent(&features, "apps", &["b"]).await, 1, "others find a place");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_hangs_in_another_cluster_leaves_first_looks_to_other_groups() {
    let features = Arc::new(Features::elsewhere());
    assert_eq!(silent(&features, "slow.example.com", &["a"; 100]).await, 2);
    assert_eq!(silent(&features, "apps", &["a"]).await, 1);
}

/// What a list brings of a server that needs so long for each page, and always has one more after so many.
async fn paged(seconds: u64, pages: u32) -> (Vec<String>, u32) {
    let record = Arc::new(Record::default());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        let watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let next = if number < pages { "more" } else { "" };
        let page = json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": []}).to_string();
        async move {
            if watch || number > pages {
                return std::future::pending().await;
            }
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(page)).boxed_unsync()))
        }
    });
    let follower = follower(Client::new(service, "default"), Arc::default(), "", "shop", WatchSelect::All);
    let (_keep, mut restart) = watch::channel(0);
    let limit = Duration::from_secs(limits::LIST_SECONDS + 1);
    let _ = tokio::time::timeout(limit, follower.run(&*record, &mut restart)).await;
    (record.reports(), asked.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn a_list_may_take_as_long_as_its_limit_and_no_longer() {
    let limit = limits::LIST_SECONDS;
    assert_eq!(paged((limit - 2) / 2, 2).await.0, ["all [] at 1"]);
    assert_eq!(paged(limit.div_ceil(2) + 1, 2).await.0, ["lost 1"]);
    assert_eq!(paged(limit * 100, 1).await.0, ["lost 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_last_page_is_given_up() {
    let most = u32::try_from(limits::LIST_PAGES).unwrap();
    let (reports, asked) = paged(0, most).await;
    assert_eq!((reports, asked), (vec!["all [] at 1".to_owned()], most + 1), "all pages, and the watch");
    let (reports, _) = paged(0, most + 1).await;
    assert_eq!(reports.first().map(String::as_str), Some("lost 1"));
}
