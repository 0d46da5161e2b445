//! The outcome of conditions as JUnit XML, for build servers.

use crate::gate::{gate_note, gate_reason, gate_value};
use jitterscope_analyze::gate::{GateResult, GateVerdict};
use jitterscope_model::visible;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// One suite of this name with one case for each condition: a failure if it was exceeded, an error if it is undecided.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn junit(suite: &str, results: &[GateResult]) -> io::Result<String> {
    let count = |verdict| {
        results
            .iter()
            .filter(|result| result.verdict == verdict)
            .count()
            .to_string()
    };
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let name = visible(suite).into_owned();
    writer
        .create_element("testsuite")
        .with_attributes([
            ("name", name.as_str()),
            ("tests", results.len().to_string().as_str()),
            ("failures", count(GateVerdict::Exceeded).as_str()),
            ("errors", count(GateVerdict::Undecided).as_str()),
        ])
        .write_inner_content(|writer| {
            for result in results {
                case(writer, &name, result)?;
            }
            Ok(())
        })?;
    let mut text = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

fn case(writer: &mut Writer<Vec<u8>>, suite: &str, result: &GateResult) -> io::Result<()> {
    let condition = visible(&result.condition).into_owned();
    let value = gate_value(result.value);
    let case = writer
        .create_element("testcase")
        .with_attributes([("classname", suite), ("name", condition.as_str())]);
    case.write_inner_content(|writer| {
        match result.verdict {
            GateVerdict::Kept => {}
            GateVerdict::Exceeded => {
                writer
                    .create_element("failure")
                    .with_attribute(("message", value.as_str()))
                    .write_empty()?;
            }
            GateVerdict::Undecided => {
                let why = result
                    .why
                    .as_ref()
                    .map_or_else(|| "cannot be decided".into(), gate_reason);
                let why = visible(&why).into_owned();
                writer
                    .create_element("error")
                    .with_attribute(("message", why.as_str()))
                    .write_empty()?;
            }
        }
        let note = result
            .note
            .iter()
            .map(|note| format!(": {}", visible(&gate_note(note))))
            .collect::<String>();
        writer
            .create_element("system-out")
            .write_text_content(BytesText::new(&format!("{value}{note}")))?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::gate::{GateReason, GateValue};

    #[test]
    fn names_of_others_cannot_break_the_file() {
        let result = |condition: &str, verdict, why: Option<GateReason>| GateResult {
            condition: condition.into(),
            verdict,
            value: Some(GateValue::Share(0.015)),
            why,
            note: None,
        };
        let thread = "trace \"lost\"".into();
        let named = GateReason::GoesByProcess {
            thread,
            program: "java".into(),
        };
        let text = junit(
            "run <\"a\"> & \u{1b}b",
            &[
                result("max<1ms", GateVerdict::Kept, None),
                result("culprit(a&b)>1%", GateVerdict::Exceeded, None),
                result("wait.p50>1ms", GateVerdict::Undecided, Some(named)),
            ],
        )
        .unwrap();
        assert!(
            text.contains(r#"tests="3" failures="1" errors="1""#),
            "{text}"
        );
        assert!(
            text.contains("max&lt;1ms")
                && text.contains("a&amp;b")
                && text.contains("&quot;lost&quot;"),
            "{text}"
        );
        assert!(
            !text.contains('\u{1b}') && text.matches("<testcase").count() == 3,
            "{text}"
        );
    }
}
