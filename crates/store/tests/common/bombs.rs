//! Files of a run that are small, or claim little, and would exhaust the memory of a reader.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use crate::tables::{Columns, Values, schema, table, texts, u32s, u64s};
use base64::Engine;
use flate2::write::ZlibEncoder;
use parquet::basic::{Compression, Encoding, Repetition};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// A replacement for a file of a run.
pub struct Bomb {
    pub name: &'static str,
    /// Writes it into the folder of a run.
    pub plant: fn(&Path),
    /// A part of the error's text; empty where the run stays readable.
    pub said: &'static str,
}

pub const BOMBS: &[Bomb] = &[
    Bomb {
        name: "three million equal rows",
        plant: |run| equal_rows(run, 3_000_000),
        said: "rows for its size",
    },
    Bomb {
        name: "a stall of very many parts",
        plant: many_parts,
        said: "parts of one stall",
    },
    Bomb {
        name: "a page that inflates to 8 MB",
        plant: |run| {
            let zeros = |_| vec![0; 1 << 20];
            let plain = properties(Compression::SNAPPY)
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::PLAIN);
            let huge = plain
                .set_data_page_size_limit(1 << 30)
                .set_write_batch_size(1 << 24);
            parts(run, 2, zeros, |_| (0, 0), huge);
        },
        said: "in a page",
    },
    Bomb {
        name: "a dictionary of one huge text",
        plant: |run| {
            let text = "x".repeat(30 << 20);
            let wide = properties(Compression::SNAPPY).set_dictionary_page_size_limit(1 << 30);
            names(run, 1, 8, |_| texts(8, &text), wide);
        },
        said: "in a page",
    },
    Bomb {
        name: "texts that are their neighbour's and a little more",
        plant: |run| {
            let text = "x".repeat(40_000);
            let plain = properties(Compression::UNCOMPRESSED).set_dictionary_enabled(false);
            let prefixed = plain.set_column_encoding("name".into(), Encoding::DELTA_BYTE_ARRAY);
            names(run, 1, FEW, |_| texts(FEW, &text), prefixed);
        },
        said: "encoded as none of ours is",
    },
    Bomb {
        name: "long texts again and again",
        plant: |run| {
            let text = "x".repeat(60_000);
            let wide = properties(Compression::SNAPPY).set_dictionary_page_size_limit(62_000);
            names(run, 1, FEW, |_| texts(FEW, &text), wide);
        },
        said: "",
    },
    Bomb {
        name: "a name of its own for each of many rows",
        plant: |run| {
            let own = |batch: usize| {
                let name = |row| format!("{:0>600}", batch * ROWS + row);
                Values::Text(
                    (0..ROWS)
                        .map(|row| Some(name(row).as_str().into()))
                        .collect(),
                )
            };
            let wide = properties(Compression::SNAPPY)
                .set_dictionary_enabled(false)
                .set_data_page_row_count_limit(256)
                .set_write_batch_size(256);
            names(run, 2, ROWS, own, wide);
        },
        said: "",
    },
    Bomb {
        name: "columns in columns",
        plant: |run| {
            let mut inner = u64s([]).field("x");
            for depth in 0..30 {
                let name = format!("x{depth}");
                let group = Type::group_type_builder(&name)
                    .with_repetition(Repetition::REQUIRED)
                    .with_fields(vec![inner]);
                inner = Arc::new(group.build().unwrap());
            }
            no_rows(&run.join("stalls.parquet"), vec![inner]);
        },
        said: "levels of columns",
    },
    Bomb {
        name: "very many columns",
        plant: |run| {
            let field = |n| u64s([]).field(&format!("c{n}"));
            no_rows(
                &run.join("stalls.parquet"),
                (0..50_000).map(field).collect(),
            );
        },
        said: "descriptions in its footer",
    },
    Bomb {
        name: "a histogram that inflates to 64 MB",
        plant: |run| line(run, &deflated(&[&head(3), &vec![0; 64 << 20][..]].concat())),
        said: "bytes of a histogram",
    },
    Bomb {
        name: "a histogram of five digits",
        plant: |run| line(run, &deflated(&head(5))),
        said: "digits of a histogram",
    },
    Bomb {
        name: "more than a million warnings",
        plant: |run| document(run, "details.json", "warnings", "{\"id\":\"x\"}", 1_500_000),
        said: "JITTERSCOPE_READ_MEMORY",
    },
    Bomb {
        name: "a label of 60 MB",
        plant: |run| {
            let head = fs::read_to_string(run.join("manifest.json")).unwrap();
            let label = format!("\"label\": \"{}\"", "x".repeat(60 << 20));
            let at = head.find("\"label\"").unwrap();
            let end = at + head[at..].find(',').unwrap();
            let text = format!("{}{label}{}", &head[..at], &head[end..]);
            fs::write(run.join("manifest.json"), text).unwrap();
        },
        said: "JITTERSCOPE_READ_MEMORY",
    },
];

const PARTS: &str = "parts.parquet";
const CULPRITS: &str = "culprits.parquet";
const REMARKS: &str = "remarks.parquet";
/// Rows of a batch.
const ROWS: usize = 100_000;
/// Rows of long texts, which are slow to write.
const FEW: usize = 1_500;

fn properties(compression: Compression) -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(compression)
}

/// The row numbers of a batch.
fn numbers(batch: usize, count: usize) -> std::ops::Range<u32> {
    (batch * count) as u32..((batch + 1) * count) as u32
}

/// Writes parts, `batches` times for the given stalls, with each row's culprit and time.
fn parts(
    run: &Path,
    batches: usize,
    stalls: impl Fn(usize) -> Vec<u64>,
    of: impl Fn(u32) -> (u32, u64),
    properties: WriterPropertiesBuilder,
) {
    let columns = |batch| {
        let stalls = stalls(batch);
        let count = stalls.len();
        let net: Vec<u64> = numbers(batch, count).map(|row| of(row).1).collect();
        let culprits = numbers(batch, count).map(|row| of(row).0);
        named([
            ("stall_id", u64s(stalls)),
            ("culprit_id", u32s(culprits)),
            ("remark_id", u32s(vec![0; count])),
            ("net_ns", u64s(net.clone())),
            ("gross_ns", u64s(net)),
        ])
    };
    table(&run.join(PARTS), batches, columns, properties.build());
    let remark = |_| {
        named([
            ("remark_id", u32s([0])),
            ("placement", texts(1, "inside")),
            ("confidence", texts(1, "high")),
            ("evidence", texts(1, "switch_records")),
        ])
    };
    table(&run.join(REMARKS), 1, remark, small().build());
    let culprit = |_| {
        named([
            ("culprit_id", u32s([0])),
            ("kind", texts(1, "softirq")),
            ("name", texts(1, "x")),
        ])
    };
    table(&run.join(CULPRITS), 1, culprit, small().build());
}

fn named<const N: usize>(columns: [(&str, Values); N]) -> Columns {
    columns
        .map(|(name, values)| (name.to_owned(), values))
        .into()
}

/// Properties that a table of this program could have.
fn small() -> WriterPropertiesBuilder {
    properties(Compression::UNCOMPRESSED)
        .set_data_page_row_count_limit(4096)
        .set_write_batch_size(256)
        .set_dictionary_enabled(false)
}

/// Writes culprits of these names, each with a part.
fn names(
    run: &Path,
    batches: usize,
    count: usize,
    names: impl Fn(usize) -> Values,
    properties: WriterPropertiesBuilder,
) {
    let stalls = |batch| numbers(batch, count).map(u64::from).collect();
    parts(run, batches, stalls, |row| (row, 7), small());
    let columns = |batch| {
        let names = names(batch);
        named([
            ("culprit_id", u32s(numbers(batch, count))),
            ("kind", texts(count, "thread")),
            ("name", names.clone()),
            ("comm", names),
        ])
    };
    table(&run.join(CULPRITS), batches, columns, properties.build());
}

fn equal_rows(run: &Path, count: usize) {
    let equal = |_| vec![0; ROWS];
    let many = properties(Compression::SNAPPY);
    parts(run, count / ROWS, equal, |_| (0, 7), many);
}

/// Many parts of one stall, in enough bytes that the number of rows is plausible.
fn many_parts(run: &Path) {
    let one = |_| vec![0; ROWS];
    let noise = |row| u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    parts(run, 2, one, |row| (0, noise(row)), small());
}

fn no_rows(path: &Path, fields: Vec<TypePtr>) {
    let file = File::create(path).unwrap();
    let writer = SerializedFileWriter::new(file, schema(fields), Arc::default()).unwrap();
    writer.close().unwrap();
}

/// The header of a histogram with this many significant digits and no counts.
fn head(digits: u32) -> Vec<u8> {
    [
        &0x1c84_9313u32.to_be_bytes()[..],
        &[0; 8],
        &digits.to_be_bytes(),
        &1u64.to_be_bytes(),
        &u64::MAX.to_be_bytes(),
        &1f64.to_be_bytes(),
    ]
    .concat()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut deflated = ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    deflated.write_all(bytes).unwrap();
    let payload = deflated.finish().unwrap();
    let length = u32::try_from(payload.len()).unwrap();
    [
        &0x1c84_9314u32.to_be_bytes()[..],
        &length.to_be_bytes(),
        &payload,
    ]
    .concat()
}

fn line(run: &Path, histogram: &[u8]) {
    let encoded = base64::engine::general_purpose::STANDARD.encode(histogram);
    let text = format!("#[StartTime: 0 (seconds since epoch)]\nTag=a,0.0,1.0,1.0,{encoded}\n");
    fs::write(run.join("histograms.hlog"), text).unwrap();
}

/// Rewrites a document so that its list `field` repeats `element` `count` times.
fn document(run: &Path, name: &str, field: &str, element: &str, count: usize) {
    let path = run.join(name);
    let text = fs::read_to_string(&path).unwrap();
    let list = format!("\"{field}\":[");
    let at = text.find(&list).unwrap() + list.len();
    let mut out = BufWriter::new(File::create(&path).unwrap());
    out.write_all(&text.as_bytes()[..at]).unwrap();
    for n in 0..count {
        out.write_all(if n > 0 { b"," } else { b"" }).unwrap();
        out.write_all(element.as_bytes()).unwrap();
    }
    let rest = text[at..]
        .strip_prefix(']')
        .map_or_else(|| format!(",{}", &text[at..]), |rest| format!("]{rest}"));
    out.write_all(rest.as_bytes()).unwrap();
    out.flush().unwrap();
}
