//! Tests of excerpts.

use super::*;
use serde_json::json;

fn args(top: Option<u32>, fields: &[&str], cursor: Option<&str>) -> ExcerptArgs {
    ExcerptArgs {
        top,
        fields: fields.iter().map(ToString::to_string).collect(),
        cursor: cursor.map(Into::into),
    }
}

fn whole() -> Value {
    json!({
        "schema_version": 1,
        "runs": (0..100).map(|n| json!({"id": format!("run-{n}"), "label": "x\"y", "cpus": "0"})).collect::<Vec<_>>(),
        "problems": [],
    })
}

fn part(args: &ExcerptArgs) -> Value {
    serde_json::to_value(args.of(Document::List, whole()).unwrap()).unwrap()
}

#[test]
fn pages_give_every_entry_once_and_in_order() {
    let mut ids = Vec::new();
    let mut next = None;
    loop {
        let page = part(&args(Some(7), &["runs.id"], next.as_deref()));
        let list = if next.is_none() {
            &page["runs"]
        } else {
            &page["page"]
        };
        ids.extend(
            list.as_array()
                .unwrap()
                .iter()
                .map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        let Some(more) = page.get("left_out") else {
            break;
        };
        assert_eq!(more[0]["of"], 100);
        assert_eq!(more[0]["shown"], ids.len());
        next = Some(more[0]["cursor"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        ids,
        (0..100).map(|n| format!("run-{n}")).collect::<Vec<_>>()
    );
}

#[test]
fn an_answer_is_within_its_bytes_whatever_is_asked_for() {
    for bytes in [400, 1000, 3000, 1 << 20] {
        for asked in [
            args(None, &[], None),
            args(Some(90), &["runs"], None),
            args(None, &[], Some("/runs@40")),
            args(None, &[], Some("/runs/3@0")),
        ] {
            let excerpt = asked.within(Document::List, whole(), bytes).unwrap();
            let text = serde_json::to_string(&serde_json::to_string(&excerpt).unwrap()).unwrap();
            assert!(text.len() <= bytes + 2, "{bytes}: {text}");
            assert!(bytes < 1 << 20 || excerpt.left_out.iter().all(|of| of.shown > 0));
        }
    }
}

#[test]
fn a_field_that_is_too_large_is_left_out_with_a_cursor_for_it() {
    let long: Vec<String> = (0..20).map(|n| format!("{n}").repeat(50)).collect();
    let whole = json!({
        "schema_version": 1,
        "machine": {"a": {"b": long, "c": 1}, "d": "x".repeat(1500)},
        "run": {"id": "abc"},
    });
    let within = |asked: &ExcerptArgs, bytes| {
        serde_json::to_value(
            asked
                .within(Document::Report, whole.clone(), bytes)
                .unwrap(),
        )
        .unwrap()
    };
    let first = within(&args(None, &[], None), 500);
    assert_eq!(first["run"]["id"], "abc");
    let left = first["left_out"].as_array().unwrap();
    let of_text = left.iter().find(|of| of["at"] == "/machine/d").unwrap();
    assert_eq!(
        (&of_text["shown"], &of_text["of"]),
        (&json!(0), &json!(1500))
    );
    assert!(of_text.get("cursor").is_none());
    let of_list = left.iter().find(|of| of["at"] == "/machine/a/b").unwrap();
    assert_eq!(of_list["cursor"], "/machine/a/b@1");
    let machine = within(&args(None, &[], Some("/machine/a@0")), 3000);
    assert_eq!(machine["page"]["b"].as_array().unwrap().len(), 20);
    // One field is more than the whole answer may have.
    let nested = within(&args(None, &["machine"], None), 300);
    assert!(nested.to_string().len() < 400, "{nested}");
    assert_eq!(nested["machine"]["a"]["c"], 1);
}

#[test]
fn only_named_fields_are_left() {
    let named = part(&args(Some(1), &["runs.label", "problems"], None));
    assert_eq!(named["runs"], json!([{"label": "x\"y"}]));
    assert_eq!(named["problems"], json!([]));
    assert_eq!(named["schema_version"], 1);
    let whole_field = part(&args(Some(1), &["runs.label", "runs"], None));
    assert_eq!(whole_field["runs"][0]["cpus"], "0");
}

#[test]
fn a_wrong_field_or_cursor_names_what_there_is() {
    let error = |asked: ExcerptArgs| asked.of(Document::List, whole()).unwrap_err().to_string();
    let text = error(args(None, &["runs.lable"], None));
    assert!(text.contains("did you mean runs.label?"), "{text}");
    let text = error(args(None, &["culprits"], None));
    assert!(text.contains("list --json has no such field"), "{text}");
    assert!(text.contains("problems, runs, schema_version"), "{text}");
    let text = error(args(None, &["runs.id.x"], None));
    assert!(text.contains("runs.id has no fields"), "{text}");
    for wrong in [
        "",
        "runs",
        "/runs",
        "/runs@",
        "/runs@x",
        "/nothing@0",
        "/runs/0/id@0",
        "@0",
    ] {
        let text = error(args(None, &[], Some(wrong)));
        assert!(text.starts_with("--cursor"), "{wrong}: {text}");
    }
    let text = error(args(None, &[], Some("/runs@100")));
    assert!(text.contains("100 entries"), "{text}");
}

#[test]
fn every_kind_of_document_states_its_fields() {
    for document in Document::ALL {
        let asked = args(None, &["schema_version"], None);
        let excerpt = asked
            .of(document, json!({"schema_version": 1, "x": 2}))
            .unwrap();
        assert!(excerpt.rest.is_empty(), "{document:?}");
    }
    for path in [
        "attribution.culprits.kind",
        "worst.parts.net_ns",
        "run.id",
        "machine",
    ] {
        args(None, &[path], None)
            .of(Document::Report, json!({}))
            .unwrap();
    }
}

#[test]
fn entries_before_the_moment_are_left_out() {
    let mut document = json!({
        "run": {"started_realtime_ns": 5},
        "worst": [{"start_realtime_ns": 5}, {"start_realtime_ns": 10}, {"start_realtime_ns": 11}],
        "culprits": [{"total_ns": 3}],
    });
    since(&mut document, 10);
    assert_eq!(document["worst"].as_array().unwrap().len(), 2);
    assert_eq!(document["run"]["started_realtime_ns"], 5);
    assert_eq!(document["culprits"].as_array().unwrap().len(), 1);
}
