#!/usr/bin/env bash
# Latency of `serve` on a repository, and the work that stable prompts save for the model's server.
#
#     benches/serve.sh DIR NAME [SETTINGS...]                  decision and retrieval, against a stand-in that answers at once
#     MODEL=http://127.0.0.1:8080 benches/serve.sh DIR NAME    tokens that the model's server evaluates, by policy and stability
#
# DIR contains the repository NAME. PROGRAM is the program [target/release/repoformer], compiled with `--features serve`; TASKS is
# the number of lines [120 and 4].
set -euo pipefail
program=${PROGRAM:-target/release/repoformer} dir=${1:?DIR} name=${2:?NAME}
shift 2
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
"$program" sample --kind line --per-repo "${TASKS:-$([ -n "${MODEL:-}" ] && echo 4 || echo 120)}" --seed 1 \
  --repos-dir "$dir" --repo "$name" -o "$work/tasks.jsonl" 2>/dev/null || true

if [ -z "${MODEL:-}" ]; then
  cat > "$work/model.py" <<'E'
import http.server, sys

class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_): pass

    def send(self, text, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.send(b'{"data": []}', "application/json")

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send(b'data: {"choices": [{"text": "x", "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n', "text/event-stream")

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
open(sys.argv[1], "w").write(str(server.server_address[1]))
server.serve_forever()
E
  python3 "$work/model.py" "$work/port" &
  until [ -s "$work/port" ]; do sleep 0.05; done
  model=http://127.0.0.1:$(cat "$work/port")
else
  model=$MODEL
fi

# Starts the server with these settings, replays, and prints the measurements.
measure() {
  local replay=$1 said=$work/said
  shift
  : > "$said"
  "$program" serve --repos-dir "$dir" --repo "$name" --cache-dir "$work/cache" --listen 127.0.0.1:0 --endpoint "$model" "$@" 2>"$said" &
  local server=$!
  until grep -q '^listening on ' "$said"; do
    kill -0 "$server" 2>/dev/null || { cat "$said" >&2; exit 1; }
    sleep 0.05
  done
  grep 'ready in' "$said"
  "$program" replay --tasks "$work/tasks.jsonl" --repos-dir "$dir" --repo "$name" --server "$(sed -n 's/^listening on //p' "$said")" $replay
  grep -E 'VmRSS|VmHWM' "/proc/$server/status" || true
  kill "$server"
  wait "$server" 2>/dev/null || true
}

if [ -z "${MODEL:-}" ]; then
  measure "--keystrokes 24" "$@" >/dev/null        # fills the cache
  echo "== five lines of a file, one after the other"
  measure "--limit 24 --lines 5 --keystrokes 24" "$@"
  echo "== each line in another file"
  measure "--keystrokes 24" "$@"
else
  for way in "never" "always" "always --stability 0.1" "trial-retrieval@0.35" "trial-retrieval@0.35 --stability 0.1"; do
    printf '\n== --policy %s\n' "$way"
    measure "--lines 4 --keystrokes 1 --max-tokens 6" --prompt-style plain --right-context no --max-prompt-tokens 1500 --policy $way "$@"
  done
fi
