"""The functions that handlers of XLA's FFI call back, as LLVM text: no Python runs.

    native_api(target)      the text of `abi.FUNCTIONS`, called tracejit_ffi_Error_Create and so on

``tracejit_ffi_settle(run, error, future)`` and ``tracejit_ffi_end(run)`` are what a `Record` names,
``tracejit_ffi_wait(future)`` returns the error of a future, which it frees, and
``tracejit_ffi_reset(host)`` makes a pool without threads of a `Host`. ``tracejit_ffi_stop(host)``
ends the pool's threads, and ``tracejit_ffi_delete(host, type, state)`` a state. The functions have
no memory of their own: a handler's context is a `Run`, which leads to the record and the host.
"""

from __future__ import annotations

import re
from ctypes import sizeof

from tracejit.backends import native_abi as abi
from tracejit.backends.native_abi import Code, Stage
from tracejit.backends.tvm.cpu.processor import Processor

_STRUCTURES = {
    **abi.REQUESTS,
    **{kind.__name__: kind for kind in (abi.Record, abi.Run, abi.Error, abi.Future, abi.Task)},
    **{kind.__name__: kind for kind in (abi.Buffer, abi.CallFrame, abi.Arguments, abi.Host)},
}
_FIELD = re.compile(r"\[(%\w+) (\w+)\.(\w+)\]")
_FAILURE = re.compile(r'fail (\w+) "([^"]*)"')


def native_api(target: Processor) -> str:
    """The text for a processor; it needs the C library and POSIX threads."""
    set_mask = 3 if "apple" in target.triple else 2
    return _expanded(_TEXT.replace("SETMASK", str(set_mask)))


def _expanded(text: str) -> str:
    """LLVM text for text with ``[%pointer Structure.field]``, an address, in its last operands, and
    ``fail CODE "message"``, which returns a new error.
    """
    lines: list[str] = []
    messages: dict[str, str] = {}
    for line in text.splitlines():
        if failure := _FAILURE.search(line):
            code, message = failure.groups()
            name = messages.setdefault(message, f"@tracejit_ffi_message_{len(messages)}")
            made = f"%made{len(lines)}"
            code_of = Code[code].value
            lines.append(f"  {made} = call ptr @tracejit_ffi_new_error(i32 {code_of}, ptr {name})")
            lines.append(f"  ret ptr {made}")
            continue
        if found := _FIELD.search(line):
            memory, structure, field = found.groups()
            offset = getattr(_STRUCTURES[structure], field).offset
            at = f"%at{len(lines)}"
            lines.append(f"  {at} = getelementptr i8, ptr {memory}, i64 {offset}")
            line = line.replace(found[0], at)
        lines.append(line)
    for message, name in messages.items():
        size = len(message) + 1
        lines.append(f'{name} = private constant [{size} x i8] c"{message}\\00"')
    return "\n".join([*lines, ""])


_PLACES = "\n".join(
    f"  i32 {stage.value}, label %{stage.name.lower()}" for stage in list(Stage)[:3]
)

_TEXT = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @strlen(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_destroy(ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_destroy(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@tracejit_ffi_empty = private constant [1 x i8] zeroinitializer
@tracejit_ffi_no_memory = private constant <{{ i32, [24 x i8] }}>
  <{{ i32 {Code.RESOURCE_EXHAUSTED.value}, [24 x i8] c"there is no memory left\\00" }}>

; Errors

define internal ptr @tracejit_ffi_new_error(i32 %code, ptr %given) {{
  %none = icmp eq ptr %given, null
  %message = select i1 %none, ptr @tracejit_ffi_empty, ptr %given
  %length = call i64 @strlen(ptr %message)
  %after = add i64 %length, 1
  %size = add i64 %after, {abi.Error.message.offset}
  %made = call ptr @malloc(i64 %size)
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %no, label %yes
yes:
  store i32 %code, ptr [%made Error.code]
  %to = getelementptr i8, ptr %made, i64 {abi.Error.message.offset}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %message, i64 %after, i1 false)
  ret ptr %made
no:
  ret ptr @tracejit_ffi_no_memory
}}
define ptr @tracejit_ffi_Error_Create(ptr %r) {{
  %message = load ptr, ptr [%r Error_Create.message]
  %code = load i32, ptr [%r Error_Create.code]
  %made = call ptr @tracejit_ffi_new_error(i32 %code, ptr %message)
  ret ptr %made
}}
define ptr @tracejit_ffi_Error_GetMessage(ptr %r) {{
  %error = load ptr, ptr [%r Error_GetMessage.error]
  %message = getelementptr i8, ptr %error, i64 {abi.Error.message.offset}
  store ptr %message, ptr [%r Error_GetMessage.message]
  ret ptr null
}}
define internal void @tracejit_ffi_destroy(ptr %error) {{
  %is_static = icmp eq ptr %error, @tracejit_ffi_no_memory
  br i1 %is_static, label %kept, label %made
made:
  call void @free(ptr %error)
  ret void
kept:
  ret void
}}
define ptr @tracejit_ffi_Error_Destroy(ptr %r) {{
  %error = load ptr, ptr [%r Error_Destroy.error]
  call void @tracejit_ffi_destroy(ptr %error)
  ret ptr null
}}

; The context of a call

define ptr @tracejit_ffi_Stream_Get(ptr %r) {{
  fail UNIMPLEMENTED "there are no streams on the CPU"
}}
define ptr @tracejit_ffi_ExecutionContext_Get(ptr %r) {{
  fail NOT_FOUND "no user data was given to this call"
}}
define ptr @tracejit_ffi_RunId_Get(ptr %r) {{
  %run = load ptr, ptr [%r RunId_Get.context]
  %number = load i64, ptr [%run Run.number]
  store i64 %number, ptr [%r RunId_Get.run]
  ret ptr null
}}
define ptr @tracejit_ffi_DeviceOrdinal_Get(ptr %r) {{
  store i32 0, ptr [%r DeviceOrdinal_Get.ordinal]
  ret ptr null
}}
define internal ptr @tracejit_ffi_host_of(ptr %run) {{
  %record = load ptr, ptr [%run Run.record]
  %host = load ptr, ptr [%record Record.host]
  ret ptr %host
}}

; States: the number of a type, and a pointer

define internal ptr @tracejit_ffi_state_of(ptr %run, i32 %stage) {{
  switch i32 %stage, label %none [
{_PLACES}
  ]
instantiate:
  %record = load ptr, ptr [%run Run.record]
  %kept = getelementptr i8, ptr %record, i64 {abi.Record.state_type.offset}
  ret ptr %kept
prepare:
  %prepared = getelementptr i8, ptr %run, i64 {abi.Run.prepared_type.offset}
  ret ptr %prepared
initialize:
  %initialized = getelementptr i8, ptr %run, i64 {abi.Run.initialized_type.offset}
  ret ptr %initialized
none:
  ret ptr null
}}
define ptr @tracejit_ffi_State_Set(ptr %r) {{
  %run = load ptr, ptr [%r State_Set.context]
  %stage = load i32, ptr [%r State_Set.stage]
  %type_at = load ptr, ptr [%r State_Set.type_id]
  %type = load i64, ptr %type_at
  %state = load ptr, ptr [%r State_Set.state]
  %place = call ptr @tracejit_ffi_state_of(ptr %run, i32 %stage)
  %is_none = icmp eq ptr %place, null
  br i1 %is_none, label %none, label %some
some:
  %before = load i64, ptr %place
  %is_set = icmp ne i64 %before, 0
  br i1 %is_set, label %twice, label %first
first:
  %is_known = icmp ne i64 %type, 0
  br i1 %is_known, label %keep, label %unknown
keep:
  store i64 %type, ptr %place
  %second = getelementptr i8, ptr %place, i64 {abi.WORD}
  store ptr %state, ptr %second
  ret ptr null
none:
  fail INVALID_ARGUMENT "the execute stage leaves no state"
twice:
  fail ALREADY_EXISTS "the state of this stage is set already"
unknown:
  fail INVALID_ARGUMENT "the type of the state is not registered"
}}
define ptr @tracejit_ffi_State_Get(ptr %r) {{
  %run = load ptr, ptr [%r State_Get.context]
  %stage = load i32, ptr [%r State_Get.stage]
  %type_at = load ptr, ptr [%r State_Get.type_id]
  %type = load i64, ptr %type_at
  %place = call ptr @tracejit_ffi_state_of(ptr %run, i32 %stage)
  %is_none = icmp eq ptr %place, null
  br i1 %is_none, label %none, label %some
some:
  %known = load i64, ptr %place
  %is_unset = icmp eq i64 %known, 0
  br i1 %is_unset, label %none, label %set
set:
  %same = icmp eq i64 %known, %type
  br i1 %same, label %give, label %other
give:
  %second = getelementptr i8, ptr %place, i64 {abi.WORD}
  %state = load ptr, ptr %second
  store ptr %state, ptr [%r State_Get.state]
  ret ptr null
none:
  fail NOT_FOUND "there is no state: no handler of that stage set one"
other:
  fail INVALID_ARGUMENT "the state is of another type"
}}
define void @tracejit_ffi_delete(ptr %host, i64 %type, ptr %state) {{
  %types = load i64, ptr [%host Host.types]
  %ids = getelementptr i8, ptr %host, i64 {abi.Host.type_ids.offset}
  %deleters = getelementptr i8, ptr %host, i64 {abi.Host.deleters.offset}
  %is_set = icmp ne i64 %type, 0
  br i1 %is_set, label %again, label %done
again:
  %i = phi i64 [ 0, %0 ], [ %next, %following ]
  %is_left = icmp slt i64 %i, %types
  br i1 %is_left, label %look, label %done
look:
  %id_at = getelementptr ptr, ptr %ids, i64 %i
  %id = load ptr, ptr %id_at
  %is_none = icmp eq ptr %id, null
  br i1 %is_none, label %following, label %compare
compare:
  %number = load i64, ptr %id
  %is_it = icmp eq i64 %number, %type
  br i1 %is_it, label %found, label %following
following:
  %next = add i64 %i, 1
  br label %again
found:
  %place = getelementptr ptr, ptr %deleters, i64 %i
  %delete = load ptr, ptr %place
  %keeps = icmp eq ptr %delete, null
  br i1 %keeps, label %done, label %call
call:
  call void %delete(ptr %state)
  br label %done
done:
  ret void
}}
define void @tracejit_ffi_end(ptr %run) {{
  %host = call ptr @tracejit_ffi_host_of(ptr %run)
  %prepared_type = load i64, ptr [%run Run.prepared_type]
  %prepared = load ptr, ptr [%run Run.prepared]
  call void @tracejit_ffi_delete(ptr %host, i64 %prepared_type, ptr %prepared)
  %initialized_type = load i64, ptr [%run Run.initialized_type]
  %initialized = load ptr, ptr [%run Run.initialized]
  call void @tracejit_ffi_delete(ptr %host, i64 %initialized_type, ptr %initialized)
  ret void
}}

; A handler that calls void f(void **outputs, void **inputs), whose address is the call's state

define internal void @tracejit_ffi_gather(ptr %values, i64 %count, ptr %into) {{
  br label %again
again:
  %i = phi i64 [ 0, %0 ], [ %next, %copy ]
  %is_left = icmp slt i64 %i, %count
  br i1 %is_left, label %copy, label %done
copy:
  %value_at = getelementptr ptr, ptr %values, i64 %i
  %value = load ptr, ptr %value_at
  %data = load ptr, ptr [%value Buffer.data]
  %to = getelementptr ptr, ptr %into, i64 %i
  store ptr %data, ptr %to
  %next = add i64 %i, 1
  br label %again
done:
  ret void
}}
define ptr @tracejit_ffi_call_address(ptr %frame) {{
  %run = load ptr, ptr [%frame CallFrame.context]
  %record = load ptr, ptr [%run Run.record]
  %function = load ptr, ptr [%record Record.state]
  %arguments = getelementptr i8, ptr %frame, i64 {abi.CallFrame.arguments.offset}
  %results = getelementptr i8, ptr %frame, i64 {abi.CallFrame.results.offset}
  %argument_count = load i64, ptr [%arguments Arguments.size]
  %result_count = load i64, ptr [%results Arguments.size]
  %argument_values = load ptr, ptr [%arguments Arguments.values]
  %result_values = load ptr, ptr [%results Arguments.values]
  %inputs = alloca ptr, i64 %argument_count
  %outputs = alloca ptr, i64 %result_count
  call void @tracejit_ffi_gather(ptr %argument_values, i64 %argument_count, ptr %inputs)
  call void @tracejit_ffi_gather(ptr %result_values, i64 %result_count, ptr %outputs)
  call void %function(ptr %outputs, ptr %inputs)
  ret ptr null
}}

; Memory

define ptr @tracejit_ffi_DeviceMemory_Allocate(ptr %r) {{
  %size = load i64, ptr [%r DeviceMemory_Allocate.size]
  %given = load i64, ptr [%r DeviceMemory_Allocate.alignment]
  %data = getelementptr i8, ptr %r, i64 {abi.REQUESTS["DeviceMemory_Allocate"].data.offset}
  %is_small = icmp ult i64 %given, {abi.WORD}
  %alignment = select i1 %is_small, i64 {abi.WORD}, i64 %given
  %is_empty = icmp eq i64 %size, 0
  %bytes = select i1 %is_empty, i64 1, i64 %size
  %status = call i32 @posix_memalign(ptr %data, i64 %alignment, i64 %bytes)
  %is_made = icmp eq i32 %status, 0
  br i1 %is_made, label %made, label %none
made:
  ret ptr null
none:
  ret ptr @tracejit_ffi_no_memory
}}
define ptr @tracejit_ffi_DeviceMemory_Free(ptr %r) {{
  %data = load ptr, ptr [%r DeviceMemory_Free.data]
  call void @free(ptr %data)
  ret ptr null
}}

; The pool of threads

define void @tracejit_ffi_reset(ptr %host) {{
  %begin = getelementptr i8, ptr %host, i64 {abi.Host.mutex.offset}
  call void @llvm.memset.p0.i64(ptr %begin, i8 0, i64 {
    sizeof(abi.Host) - abi.Host.mutex.offset
}, i1 false)
  %mutex = call i32 @pthread_mutex_init(ptr [%host Host.mutex], ptr null)
  %wake = call i32 @pthread_cond_init(ptr [%host Host.wake], ptr null)
  ret void
}}
; The first task, or null; the caller holds the lock.
define internal ptr @tracejit_ffi_take(ptr %host) {{
  %task = load ptr, ptr [%host Host.first]
  %is_none = icmp eq ptr %task, null
  br i1 %is_none, label %done, label %take
take:
  %next = load ptr, ptr [%task Task.next]
  store ptr %next, ptr [%host Host.first]
  %waiting = load i64, ptr [%host Host.waiting]
  %left = add i64 %waiting, -1
  store i64 %left, ptr [%host Host.waiting]
  br label %done
done:
  ret ptr %task
}}
define internal void @tracejit_ffi_run(ptr %task) {{
  %run = load ptr, ptr [%task Task.run]
  %data = load ptr, ptr [%task Task.data]
  call void @free(ptr %task)
  call void %run(ptr %data)
  ret void
}}
; Runs tasks until a future is done or none is left: waking another thread for them takes longer.
define internal void @tracejit_ffi_help(ptr %host, ptr %future) {{
  %mutex = getelementptr i8, ptr %host, i64 {abi.Host.mutex.offset}
  %done_at = getelementptr i8, ptr %future, i64 {abi.Future.done.offset}
  br label %look
look:
  %done = load atomic i64, ptr %done_at acquire, align 8
  %is_done = icmp ne i64 %done, 0
  br i1 %is_done, label %end, label %search
search:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %task = call ptr @tracejit_ffi_take(ptr %host)
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  %is_none = icmp eq ptr %task, null
  br i1 %is_none, label %end, label %run
run:
  call void @tracejit_ffi_run(ptr %task)
  br label %look
end:
  ret void
}}
define internal ptr @tracejit_ffi_work(ptr %host) {{
  %mutex = getelementptr i8, ptr %host, i64 {abi.Host.mutex.offset}
  %wake = getelementptr i8, ptr %host, i64 {abi.Host.wake.offset}
  %idle_at = getelementptr i8, ptr %host, i64 {abi.Host.idle.offset}
  br label %again
again:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:
  %task = call ptr @tracejit_ffi_take(ptr %host)
  %is_none = icmp eq ptr %task, null
  br i1 %is_none, label %rest, label %take
rest:
  %stopping = load i64, ptr [%host Host.stopping]
  %stops = icmp ne i64 %stopping, 0
  br i1 %stops, label %stop, label %wait
wait:
  %idle = load i64, ptr %idle_at
  %more = add i64 %idle, 1
  store i64 %more, ptr %idle_at
  %woken = call i32 @pthread_cond_wait(ptr %wake, ptr %mutex)
  %awake = load i64, ptr %idle_at
  %fewer = add i64 %awake, -1
  store i64 %fewer, ptr %idle_at
  br label %look
take:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @tracejit_ffi_run(ptr %task)
  br label %again
stop:
  %last = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret ptr null
}}
; One more thread, if there can be one; signals are for the program's own threads.
define internal void @tracejit_ffi_start(ptr %host) {{
  %all = alloca [16 x i64]
  %before = alloca [16 x i64]
  %count_at = getelementptr i8, ptr %host, i64 {abi.Host.count.offset}
  %count = load i64, ptr %count_at
  %threads = getelementptr i8, ptr %host, i64 {abi.Host.threads.offset}
  %thread = getelementptr ptr, ptr %threads, i64 %count
  %filled = call i32 @sigfillset(ptr %all)
  %masked = call i32 @pthread_sigmask(i32 SETMASK, ptr %all, ptr %before)
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @tracejit_ffi_work, ptr %host)
  %restored = call i32 @pthread_sigmask(i32 SETMASK, ptr %before, ptr null)
  %is_started = icmp eq i32 %status, 0
  br i1 %is_started, label %started, label %done
started:
  %more = add i64 %count, 1
  store i64 %more, ptr %count_at
  br label %done
done:
  ret void
}}
define ptr @tracejit_ffi_ThreadPool_Schedule(ptr %r) {{
  %context = load ptr, ptr [%r ThreadPool_Schedule.context]
  %run = load ptr, ptr [%r ThreadPool_Schedule.task]
  %data = load ptr, ptr [%r ThreadPool_Schedule.data]
  %host = call ptr @tracejit_ffi_host_of(ptr %context)
  %task = call ptr @malloc(i64 {sizeof(abi.Task)})
  %lacks = icmp eq ptr %task, null
  br i1 %lacks, label %none, label %made
made:
  store ptr null, ptr [%task Task.next]
  store ptr %run, ptr [%task Task.run]
  store ptr %data, ptr [%task Task.data]
  %mutex = getelementptr i8, ptr %host, i64 {abi.Host.mutex.offset}
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %idle = load i64, ptr [%host Host.idle]
  %waiting = load i64, ptr [%host Host.waiting]
  %are_busy = icmp ule i64 %idle, %waiting
  %count = load i64, ptr [%host Host.count]
  %most = load i64, ptr [%host Host.most]
  %has_room = icmp ult i64 %count, %most
  %needs = and i1 %are_busy, %has_room
  br i1 %needs, label %start, label %started
start:
  call void @tracejit_ffi_start(ptr %host)
  br label %started
started:
  %threads = load i64, ptr [%host Host.count]
  %is_alone = icmp eq i64 %threads, 0
  br i1 %is_alone, label %alone, label %append
append:
  %first = load ptr, ptr [%host Host.first]
  %is_first = icmp eq ptr %first, null
  br i1 %is_first, label %begin, label %follow
begin:
  store ptr %task, ptr [%host Host.first]
  br label %appended
follow:
  %last = load ptr, ptr [%host Host.last]
  store ptr %task, ptr [%last Task.next]
  br label %appended
appended:
  store ptr %task, ptr [%host Host.last]
  %more = add i64 %waiting, 1
  store i64 %more, ptr [%host Host.waiting]
  %woken = call i32 @pthread_cond_signal(ptr [%host Host.wake])
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret ptr null
alone:
  %released = call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @free(ptr %task)
  call void %run(ptr %data)
  ret ptr null
none:
  ret ptr @tracejit_ffi_no_memory
}}
define ptr @tracejit_ffi_ThreadPool_NumThreads(ptr %r) {{
  %context = load ptr, ptr [%r ThreadPool_NumThreads.context]
  %host = call ptr @tracejit_ffi_host_of(ptr %context)
  %most = load i64, ptr [%host Host.most]
  %count = load ptr, ptr [%r ThreadPool_NumThreads.count]
  store i64 %most, ptr %count
  ret ptr null
}}
; All tasks are done then.
define void @tracejit_ffi_stop(ptr %host) {{
  %mutex = getelementptr i8, ptr %host, i64 {abi.Host.mutex.offset}
  %threads = getelementptr i8, ptr %host, i64 {abi.Host.threads.offset}
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  store i64 1, ptr [%host Host.stopping]
  %woken = call i32 @pthread_cond_broadcast(ptr [%host Host.wake])
  %count = load i64, ptr [%host Host.count]
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %again
again:
  %left = phi i64 [ %count, %0 ], [ %fewer, %join ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %join
join:
  %fewer = add i64 %left, -1
  %place = getelementptr ptr, ptr %threads, i64 %fewer
  %thread = load ptr, ptr %place
  %joined = call i32 @pthread_join(ptr %thread, ptr null)
  br label %again
done:
  ret void
}}

; Handlers that go on after they have returned

define ptr @tracejit_ffi_Future_Create(ptr %r) {{
  %made = call ptr @malloc(i64 {sizeof(abi.Future)})
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %none, label %some
some:
  store i64 0, ptr [%made Future.done]
  store ptr null, ptr [%made Future.error]
  %mutex = call i32 @pthread_mutex_init(ptr [%made Future.mutex], ptr null)
  %changed = call i32 @pthread_cond_init(ptr [%made Future.changed], ptr null)
  store ptr %made, ptr [%r Future_Create.future]
  ret ptr null
none:
  ret ptr @tracejit_ffi_no_memory
}}
define internal void @tracejit_ffi_finish(ptr %future, ptr %error) {{
  %mutex = getelementptr i8, ptr %future, i64 {abi.Future.mutex.offset}
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  store ptr %error, ptr [%future Future.error]
  store atomic i64 1, ptr [%future Future.done] release, align 8
  %woken = call i32 @pthread_cond_broadcast(ptr [%future Future.changed])
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}
define ptr @tracejit_ffi_Future_SetAvailable(ptr %r) {{
  %future = load ptr, ptr [%r Future_SetAvailable.future]
  call void @tracejit_ffi_finish(ptr %future, ptr null)
  ret ptr null
}}
define ptr @tracejit_ffi_Future_SetError(ptr %r) {{
  %future = load ptr, ptr [%r Future_SetError.future]
  %error = load ptr, ptr [%r Future_SetError.error]
  call void @tracejit_ffi_finish(ptr %future, ptr %error)
  ret ptr null
}}
define ptr @tracejit_ffi_wait(ptr %future) {{
  %mutex = getelementptr i8, ptr %future, i64 {abi.Future.mutex.offset}
  %changed = getelementptr i8, ptr %future, i64 {abi.Future.changed.offset}
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:
  %done = load i64, ptr [%future Future.done]
  %is_done = icmp ne i64 %done, 0
  br i1 %is_done, label %ended, label %wait
wait:
  %woken = call i32 @pthread_cond_wait(ptr %changed, ptr %mutex)
  br label %look
ended:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  %error = load ptr, ptr [%future Future.error]
  %destroyed = call i32 @pthread_cond_destroy(ptr %changed)
  %gone = call i32 @pthread_mutex_destroy(ptr %mutex)
  call void @free(ptr %future)
  ret ptr %error
}}
define i32 @tracejit_ffi_settle(ptr %run, ptr %error, ptr %future) {{
entry:
  %goes_on = icmp ne ptr %future, null
  br i1 %goes_on, label %wait, label %known
wait:
  %pool = call ptr @tracejit_ffi_host_of(ptr %run)
  call void @tracejit_ffi_help(ptr %pool, ptr %future)
  %late = call ptr @tracejit_ffi_wait(ptr %future)
  br label %known
known:
  %other = phi ptr [ null, %entry ], [ %late, %wait ]
  %is_first = icmp eq ptr %error, null
  %failed = select i1 %is_first, ptr %other, ptr %error
  %is_good = icmp eq ptr %failed, null
  br i1 %is_good, label %good, label %bad
good:
  ret i32 1
bad:
  %host = call ptr @tracejit_ffi_host_of(ptr %run)
  %fail = load ptr, ptr [%host Host.fail]
  call void %fail(ptr %run, ptr %failed)
  ret i32 0
}}
"""
