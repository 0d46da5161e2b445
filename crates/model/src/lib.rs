//! jitterscope's vocabulary as types.
//!
//! All other crates use them: instants and lengths on the measuring clock ([`Ticks`]), lengths of real time
//! ([`Nanos`]), processors ([`CpuId`], [`CpuSet`]), probe measurements ([`Gap`], [`Stall`]), kernel activity
//! ([`KernelEvent`]), culprits ([`Culprit`], [`Attribution`]) and whole recordings ([`RunManifest`]). No I/O and no
//! `unsafe` here.
#![forbid(unsafe_code)]

mod any_version;
mod asked_event;
mod attribution;
mod blocked;
mod calls;
mod clock_flaw;
mod context;
mod cpu;
mod cpus_because;
mod culprit;
mod doubt;
mod ended_early;
mod event;
mod event_grain;
mod exponential;
mod gap;
mod imported;
mod journal;
mod kernel_source;
mod keyed;
mod machine;
mod manifest;
mod mark;
mod misfit;
mod moment;
mod named_owner;
mod passive_result;
mod pipeline_properties;
mod pipeline_result;
mod price;
mod probe_kind;
mod probe_result;
mod profile_limit;
mod protobuf;
mod put_in_order;
mod record_cost;
mod rows;
mod run_head;
mod source;
mod source_problem;
mod thousands;
mod thread_account;
mod time;
mod timeline;
mod turn;
mod upload_status;
mod visible;
mod wakeup_result;
mod warning;
mod words;

pub use any_version::AnyVersion;
pub use asked_event::{AskedEvent, AskedEventRecords, NoEventName};
pub use attribution::{Attribution, Confidence, Part, Placement};
pub use blocked::{BlockReason, BlockedOn, NoReason, SleepStack};
pub use calls::{CallRecord, GraphPrice};
pub use clock_flaw::{ClockFailure, TscFlaw};
pub use context::ExecutionContext;
pub use cpu::{CpuId, CpuList, CpuListError, CpuSet};
pub use cpus_because::CpusBecause;
pub use culprit::{
    About, Crowds, Culprit, CulpritId, CulpritKey, CulpritKind, CulpritSums, CulpritTable,
    CulpritTotal, CulpritTotals, CulpritTotalsBuilder, Evidence, Fact, FactForm, Given, GroupPath,
    KeyLevel, Meanwhile, MetCulprits, NameOf, NamedGroup, Owner, Phase, Quota, QuotaLimit, Remark,
    RemarkId, SchedClass, Sender, StallSets, Subject, SubjectFields, SumRow, Task, TaskIdentity,
    TimerSource, Verdict, Work, Worker,
};
pub use doubt::Doubt;
pub use ended_early::{EndedEarly, MovedBecause, Mover};
pub use event::{Comm, EventKind, KernelAddr, KernelEvent, Name, TaskRef, softirq_name};
pub use event_grain::EventGrain;
pub use exponential::{EXPONENTIAL_SCHEMA, bucket_end_ns, exponential_bucket};
pub use gap::{Gap, Stall, StallId, ThreadRef};
pub use imported::{AddedRecords, AlignmentStart, FirstStretch, Imported};
pub use journal::{JournalEntry, JournalError, JournalReader};
pub use kernel_source::{Record, Source, SourceTurn};
pub use keyed::{Keyed, KeyedMap, KeyedSet};
pub use machine::{
    AppliedChange, AppliedTuning, ChangeNow, Compared, DifferenceClass, FileForm, KeptNames,
    KeptText, KnobFinding, KnobSetting, KnobVerdict, MACHINE_SETTINGS, MachineEntry,
    MachineSetting, MachineSettings, MachineState, ReadFrom, Reading, ReadingFlaw, Scalar,
    SettingValue, TuningApply, TuningState,
};
pub use manifest::{
    ClockCosts, ClockReading, CounterTotal, EdgeCostRow, EventsInGaps, HostFacts, ProbeSettings,
    RunManifest, SCHEMA_VERSION, SelfNoise, SleepingWork, StoredTrace,
};
pub use mark::{AppMark, MarkForm, MarkLog};
pub use misfit::{Misfit, RoleNode};
pub use moment::{AskedBy, SavedMoment};
pub use named_owner::NamedOwner;
pub use passive_result::{BelongingThread, ChosenThread, PassiveCpu};
pub use pipeline_properties::{BadProperty, PipelineProperties};
pub use pipeline_result::{
    JournalEnd, JournalFault, JournalWriting, MessageTimes, PipelineConsumer, PipelineJournal,
    PipelinePacing, PipelineResult, PipelineRole, PipelineSetup, PipelineThread, PipelineVia,
    PublisherResult,
};
pub use price::{EventClass, EventPrice, StackPrice};
pub use probe_kind::ProbeKind;
pub use probe_result::{IntervalRow, ProbeResult};
pub use profile_limit::ProfileLimit;
pub use protobuf::Message;
pub use put_in_order::PutInOrder;
pub use record_cost::RecordCost;
pub use rows::{
    AttributedStall, Delivery, LENGTHS_REMARK, RawPage, Row, RunFacts, Sink, SinkError, TraceRole,
    begin_all,
};
pub use run_head::{RUN_SCHEMA_VERSION, RunFigures, RunHead};
pub use source::{SourceReport, SourceStatus};
pub use source_problem::{SourceLoss, SourceProblem, TracefsFlaw};
pub use thousands::thousands;
pub use thread_account::{CpuShare, RanInstead, StoppedBy, ThreadAccount};
pub use time::{ClockKind, Nanos, RateSource, TickRate, Ticks};
pub use timeline::{TimelineItem, TimelineRow};
pub use turn::{
    DrainTurn, IdentityRead, MessageTimesRow, NameRead, QuotaRead, Setup, SetupStep,
    ThrottledGroup, WarmUpTurn,
};
pub use upload_status::{UploadProblem, UploadStatus};
pub use visible::{is_visible, push_visible, visible, visible_json, visible_os, visible_page};
pub use wakeup_result::{WakeupConditions, WakeupResult};
pub use warning::{CpuUse, MeasuringThread, MissingFigure, NoKernelEvents, OtherWarning, Warning};
