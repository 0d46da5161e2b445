use super::*;
use jitterscope_model::{CpuId, EventGrain, SourceReport, SourceStatus};
use serde_json::json;

#[test]
fn a_source_is_reported_with_all_that_limits_it() {
    let problems = [
        SourceProblem::EventsMissing {
            events: vec!["a:b".into(), "c:d".into()],
        },
        SourceProblem::EventsLost { lost: 7 },
    ];
    let words = source_words(
        &problems,
        &[SourceLoss::Softirqs, SourceLoss::NearLostEvents],
    );
    assert_eq!(
        words.reason,
        "this kernel lacks a:b, c:d; the ring buffer lost 7 events"
    );
    assert_eq!(
        words.loses,
        "softirqs; the cause of stalls near the lost events"
    );
    assert!(
        words
            .fix
            .ends_with("built in; make the trace buffer larger"),
        "{}",
        words.fix
    );
    assert_eq!(source_words(&[], &[]), SourceWords::default());
}

#[test]
fn events_that_were_not_asked_for_are_not_said_to_be_lacking() {
    let problem = SourceProblem::EventsNotAsked {
        grain: EventGrain::Coarse,
    };
    let words = source_words(&[problem], &[SourceLoss::WorkItems]);
    assert_eq!(
        words.reason,
        "not all events were recorded (--events coarse)"
    );
    assert_eq!(
        (&*words.loses, &*words.fix),
        ("what kworkers ran", "record with --events all")
    );
}

#[test]
fn a_virtual_machine_gets_advice_about_its_host() {
    let of = |virtual_machine| {
        fix(&SourceProblem::NoMsrDevice {
            cpu: CpuId(0),
            virtual_machine,
        })
    };
    assert_eq!([of(true), of(false)], ["count on the host", "modprobe msr"]);
}

#[test]
fn what_a_newer_version_wrote_is_shown() {
    let read = |value| serde_json::from_value::<SourceReport>(value).unwrap();
    let newer = read(
        json!({"name": "x", "status": "denied", "problems": [{"id": "sun_spots"}],
        "losses": ["shade"], "lost": 0}),
    );
    let words = source_words(&newer.problems, &newer.losses);
    assert!(
        words.reason.ends_with("does not know (sun_spots)"),
        "{}",
        words.reason
    );
    assert_eq!((&*words.loses, &*words.fix), ("shade", ""));
    assert_eq!(newer.status, SourceStatus::Denied);
}

#[test]
fn a_user_is_told_whose_the_instances_are() {
    let path = "/sys/kernel/tracing/instances".to_owned();
    let of = |owner| SourceProblem::InstancesOfOwner {
        path: path.clone(),
        owner,
    };
    let (roots, given) = (of(Some(0)), of(Some(1000)));
    assert!(problem(&roots).contains(" belong to root, who alone"));
    assert!(fix(&roots).contains("`chown USER /sys/kernel/tracing/instances`; for several users"));
    assert!(problem(&given).contains(" belong to user 1000, "));
    assert!(fix(&given).contains("`sudo -u '#1000' jitterscope record`"));
    // Nobody's advice takes the folder from another user.
    assert!(!fix(&given).contains("chown"));
}

#[test]
fn in_a_user_namespace_the_fix_is_for_the_user_outside() {
    let inside = |user, of| SourceProblem::UserNamespace {
        user,
        problem: Box::new(of),
    };
    let mapped = inside(Some(4000), SourceProblem::MountDenied);
    assert!(
        problem(&mapped).ends_with("do not count here (outside it is user 4000)"),
        "{}",
        problem(&mapped)
    );
    let advice = fix(&mapped);
    assert!(
        advice.starts_with("outside of the user namespace, as root")
            && advice.contains("`chown 4000 /sys/kernel/tracing/instances`"),
        "{advice}"
    );
    let unmapped = inside(None, SourceProblem::MountDenied);
    assert!(fix(&unmapped).contains("`chown USER "));
    let beyond = inside(
        Some(1),
        SourceProblem::FormatUnreadable { parser: "x".into() },
    );
    assert_eq!(fix(&beyond), "");
}

#[test]
fn tracefs_below_debugfs_is_given_at_its_own_place() {
    let path = "/sys/kernel/debug/tracing/instances".into();
    let advice = fix(&SourceProblem::NoPermission { path });
    assert!(
        advice.contains("`mount -t tracefs tracefs /sys/kernel/tracing`")
            && !advice.contains("debug"),
        "{advice}"
    );
}

#[test]
fn an_error_says_what_stands_in_the_way_and_what_to_do() {
    let text = record_error(&RecordError::Graph {
        problem: SourceProblem::GraphForOne,
    });
    assert!(
        text.starts_with("kernel functions cannot be looked into: this kernel's function_graph")
    );
    assert!(
        text.ends_with("; to have it: use Linux 6.11 or later"),
        "{text}"
    );
    let text = record_error(&RecordError::Blind {
        problem: SourceProblem::LockedDown,
    });
    assert!(text.ends_with(
        "to root too; boot without lockdown=confidentiality; lockdown=integrity allows tracing"
    ));
}
