//! Methods that much else has too: of the platform's own types, of the usual libraries, and of everything that runs, opens
//! or visits. A call of one on an object of unknown class tells nothing about whose it is.

use crate::text::language::Language;

/// Whether a method of this name says nothing about its class.
pub(super) fn is_common(language: Language, method: &str) -> bool {
    let methods: &[&str] = match language {
        Language::Java => &JAVA,
        Language::CSharp => &CSHARP,
        Language::TypeScript => &TYPESCRIPT,
        Language::Python => &[],
    };
    methods.binary_search(&method).is_ok()
}

/// Of `java.lang`, `java.util`, streams, files, loggers and tests. Sorted.
#[rustfmt::skip]
const JAVA: [&str; 322] = [
    "accept", "add", "addAll", "addFirst", "addLast", "all", "and", "andThen", "any", "append", "apply",
    "applyAsInt", "applyAsLong", "asList", "atomic", "await", "build", "builder", "call", "canRead", "cancel",
    "charAt", "chars", "check", "clear", "clone", "close", "closest", "codePointAt", "collect", "compare",
    "compareTo", "compareToIgnoreCase", "complete", "compute", "computeIfAbsent", "computeIfPresent", "configure",
    "connect", "contains", "containsAll", "containsKey", "containsValue", "copy", "copyOf", "count", "countDown",
    "create", "createNewFile", "current", "debug", "decrementAndGet", "delete", "digest", "distinct", "divide",
    "encode", "endsWith", "entrySet", "equals", "equalsIgnoreCase", "error", "execute", "exists", "exit", "filter",
    "find", "findAny", "findFirst", "finish", "flatMap", "flush", "forEach", "format", "fromString", "get",
    "getAndIncrement", "getAndSet", "getAsInt", "getBoolean", "getByteArray", "getBytes", "getCanonicalName",
    "getCause", "getClass", "getDeclaredField", "getDeclaredMethod", "getDouble", "getFirst", "getFloat", "getHost",
    "getId", "getInputStream", "getInstance", "getInt", "getKey", "getLast", "getLength", "getLocalizedMessage",
    "getLong", "getMessage", "getMethod", "getModifiers", "getName", "getOrDefault", "getOutputStream",
    "getPackage", "getParameterTypes", "getParent", "getPath", "getPort", "getProperty", "getResource", "getResult",
    "getReturnType", "getSimpleName", "getSize", "getStackTrace", "getString", "getSuperclass", "getTime",
    "getType", "getValue", "getVersion", "group", "handle", "hasMoreElements", "hasNext", "hashCode", "header",
    "headers", "id", "identity", "ifPresent", "ignore", "incrementAndGet", "indexOf", "info", "init", "initialize",
    "insert", "intValue", "intern", "interrupt", "invoke", "isAlive", "isArray", "isAssignableFrom", "isBlank",
    "isDirectory", "isDone", "isEmpty", "isEnabled", "isEqual", "isFile", "isInstance", "isInterface", "isNull",
    "isPresent", "isPrimitive", "isValid", "iterator", "join", "keySet", "keys", "lastIndexOf", "length", "limit",
    "lines", "list", "listIterator", "load", "lock", "log", "longValue", "lookup", "map", "mapToInt", "mapToObj",
    "match", "matcher", "matches", "max", "merge", "min", "multiply", "name", "negate", "newInstance", "next",
    "nextElement", "nextInt", "nextLine", "noneMatch", "notify", "notifyAll", "now", "of", "ofNullable", "offer",
    "open", "or", "orElse", "orElseGet", "orElseThrow", "ordinal", "parse", "parseInt", "path", "peek", "poll",
    "pop", "post", "previous", "print", "printStackTrace", "printf", "println", "process", "push", "put", "putAll",
    "putIfAbsent", "query", "range", "read", "readLine", "readObject", "recv", "reduce", "register", "release",
    "remove", "removeAll", "removeIf", "repeat", "replace", "replaceAll", "replaceFirst", "request", "reset",
    "resolve", "result", "retainAll", "reverse", "round", "run", "schedule", "search", "seek", "select", "send",
    "set", "setAccessible", "setBoolean", "setCharAt", "setInt", "setLength", "setName", "setProperty", "setString",
    "setTime", "setType", "setValue", "shutdown", "signal", "size", "skip", "sleep", "sort", "sorted", "split",
    "start", "startsWith", "state", "status", "stop", "store", "stream", "strip", "stripTrailing", "subList",
    "subSequence", "submit", "substring", "subtract", "sum", "supply", "supplyAsync", "test", "then", "thenApply",
    "thenReturn", "throwIfNull", "time", "toArray", "toByteArray", "toCharArray", "toList", "toLowerCase", "toMap",
    "toString", "toUpperCase", "trim", "trimToSize", "tryLock", "type", "unlock", "update", "updateAndGet", "url",
    "value", "valueOf", "values", "verify", "visit", "wait", "warn", "warning", "when", "write", "writeTo",
];

/// Of `System`, collections, LINQ, streams, tasks, windows and tests. Sorted.
#[rustfmt::skip]
const CSHARP: [&str; 301] = [
    "Abort", "Abs", "Accept", "Acquire", "Add", "AddDays", "AddOrUpdate", "AddRange", "Aggregate", "All", "Any",
    "Append", "AppendFormat", "AppendLine", "Apply", "Area", "As", "AsEnumerable", "AsList", "AsReadOnly", "AsSpan",
    "Assert", "Average", "Await", "Begin", "BeginInvoke", "BinarySearch", "Bind", "Build", "Call", "Cancel", "Cast",
    "Check", "Clear", "Clone", "Close", "Combine", "Commit", "Compare", "CompareTo", "Complete", "Concat",
    "Configure", "ConfigureAwait", "Connect", "Contains", "ContainsKey", "ContainsValue", "Convert", "ConvertAll",
    "Copy", "CopyTo", "Count", "Create", "CreateInstance", "Debug", "Decode", "DefaultIfEmpty", "Delete", "Dequeue",
    "Deserialize", "Dispose", "DisposeAsync", "Distinct", "Draw", "ElementAt", "Encode", "End", "EndInvoke",
    "EndsWith", "Enqueue", "EnsureCapacity", "Equals", "Error", "Except", "Execute", "ExecuteAsync", "Exists",
    "Exit", "Fill", "Find", "FindAll", "FindIndex", "FindLast", "First", "FirstOrDefault", "Flush", "FlushAsync",
    "Focus", "ForEach", "Format", "FromBase64String", "FromResult", "Get", "GetAsync", "GetAttribute", "GetAwaiter",
    "GetBytes", "GetChild", "GetCustomAttributes", "GetData", "GetEnumerator", "GetField", "GetFields",
    "GetHashCode", "GetItem", "GetKey", "GetLength", "GetMethod", "GetMethods", "GetName", "GetObject", "GetOrAdd",
    "GetParent", "GetProperties", "GetProperty", "GetRange", "GetResult", "GetService", "GetString", "GetType",
    "GetValue", "GetValueOrDefault", "GroupBy", "Handle", "HasFlag", "Hide", "IndexOf", "Info", "Init",
    "Initialize", "Insert", "InsertRange", "Intersect", "Invalidate", "Invoke", "InvokeAsync", "Is", "IsDefined",
    "IsInstanceOfType", "IsMatch", "IsNullOrEmpty", "Join", "Last", "LastIndexOf", "LastOrDefault", "Load", "Lock",
    "Log", "Log10", "LogError", "LogInformation", "LogWarning", "MakeGenericType", "Map", "Match", "Matches", "Max",
    "MemberwiseClone", "Min", "Move", "MoveNext", "Next", "Normalize", "NotNull", "OfType", "Ok", "OnClick",
    "OnError", "OnLoad", "OnNext", "Open", "OrderBy", "OrderByDescending", "PadLeft", "PadRight", "Parse", "Peek",
    "Pop", "Post", "PostAsync", "Prepend", "Print", "Process", "Publish", "Pulse", "Push", "Raise", "Range", "Read",
    "ReadAllText", "ReadAsync", "ReadByte", "ReadLine", "ReadToEnd", "Receive", "Refresh", "Register", "Release",
    "Remove", "RemoveAll", "RemoveAt", "RemoveRange", "Render", "Repeat", "Replace", "Report", "Reset", "Resize",
    "Resolve", "ResumeLayout", "Return", "Returns", "Reverse", "Rollback", "Round", "Run", "Save", "SaveChanges",
    "SaveChangesAsync", "Search", "Seek", "Select", "SelectMany", "Send", "SendAsync", "SequenceEqual", "Serialize",
    "Set", "SetLength", "SetResult", "SetValue", "Setup", "Show", "ShowDialog", "Shutdown", "Signal", "Single",
    "SingleOrDefault", "Skip", "SkipWhile", "Sleep", "Slice", "Sort", "Split", "Start", "StartsWith", "Stop",
    "Submit", "Subscribe", "Substring", "Sum", "SuspendLayout", "Take", "TakeWhile", "Test", "Then", "ThenBy",
    "Throw", "ToArray", "ToCharArray", "ToDictionary", "ToHashSet", "ToInt32", "ToList", "ToLower",
    "ToLowerInvariant", "ToString", "ToUpper", "ToUpperInvariant", "Trace", "Transform", "Trim", "TrimEnd",
    "TrimStart", "Truncate", "TryAdd", "TryDequeue", "TryGetValue", "TryParse", "TryRemove", "Union", "Unlock",
    "Unsubscribe", "Update", "Validate", "Verify", "Visit", "Wait", "WaitAsync", "WaitOne", "Warn", "When",
    "WhenAll", "Where", "With", "Write", "WriteAsync", "WriteByte", "WriteLine", "Zip",
];

/// Of ECMAScript's objects, the browser's, Node's, promises, observables and tests. Sorted.
#[rustfmt::skip]
const TYPESCRIPT: [&str; 304] = [
    "abort", "abs", "accept", "add", "addClass", "addEventListener", "addListener", "after", "all", "allSettled",
    "any", "append", "appendChild", "apply", "assert", "assign", "at", "attr", "attributes", "before", "begin",
    "bind", "blur", "bubble", "build", "call", "callback", "cancel", "catch", "ceil", "charAt", "charCodeAt",
    "check", "clear", "clearTimeout", "click", "clone", "cloneNode", "close", "closest", "codePointAt", "commit",
    "compare", "complete", "concat", "config", "connect", "contains", "copy", "count", "create", "createElement",
    "css", "cut", "data", "debug", "decode", "defer", "delete", "describe", "destroy", "detach", "disconnect",
    "dispatch", "dispatchEvent", "dispose", "done", "draw", "each", "emit", "empty", "encode", "end", "endsWith",
    "entries", "eq", "equal", "error", "every", "exec", "execute", "exists", "exit", "expect", "extend", "fetch",
    "fill", "filter", "final", "finalize", "find", "findIndex", "findLast", "first", "flat", "flatMap", "floor",
    "flush", "focus", "forEach", "format", "freeze", "from", "fromEntries", "get", "getAll", "getAttribute",
    "getBoundingClientRect", "getContext", "getElementById", "getItem", "getTime", "getValue", "group", "groupBy",
    "handle", "has", "hasAttribute", "hasClass", "hasOwnProperty", "head", "header", "hide", "html", "id",
    "includes", "indexOf", "info", "init", "insert", "insertBefore", "invoke", "isArray", "item", "items", "join",
    "json", "keys", "last", "lastIndexOf", "length", "lift", "link", "listen", "load", "localeCompare", "lock",
    "log", "map", "match", "matchAll", "max", "merge", "message", "min", "mount", "move", "next", "nextTick",
    "normalize", "notify", "now", "observe", "of", "off", "on", "once", "open", "or", "padEnd", "padStart", "parse",
    "parseInt", "patch", "path", "pause", "pick", "pipe", "play", "pop", "post", "pow", "preventDefault",
    "previous", "print", "process", "publish", "push", "put", "query", "querySelector", "querySelectorAll", "race",
    "random", "read", "readFile", "ready", "reduce", "reduceRight", "register", "reject", "release", "reload",
    "remove", "removeAttribute", "removeChild", "removeEventListener", "removeItem", "render", "repeat", "replace",
    "replaceAll", "request", "reset", "resize", "resolve", "respond", "result", "resume", "return", "reverse",
    "round", "route", "run", "save", "schedule", "scroll", "search", "select", "send", "serialize", "set",
    "setAttribute", "setItem", "setState", "setTimeout", "setValue", "shift", "show", "shuffle", "size", "slice",
    "some", "sort", "splice", "split", "sqrt", "start", "startsWith", "state", "status", "stop", "stopPropagation",
    "store", "stringify", "subscribe", "substr", "substring", "success", "sum", "swap", "tap", "test", "text",
    "then", "throw", "time", "to", "toArray", "toBe", "toEqual", "toFixed", "toISOString", "toJSON",
    "toLocaleString", "toLowerCase", "toPromise", "toString", "toUpperCase", "toggle", "transform", "trigger",
    "trim", "trimEnd", "trimStart", "type", "unmount", "unshift", "unsubscribe", "update", "url", "use", "validate",
    "value", "valueOf", "values", "verbose", "visit", "wait", "walk", "warn", "watch", "with", "write",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_can_be_searched() {
        for list in [&JAVA[..], &CSHARP, &TYPESCRIPT] {
            assert!(list.is_sorted());
        }
    }
}
