"""Providers on loopback that take what the real ones take, and answer as they do; faults come before on request."""

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.plugins.multimodal import samples

KEY = "sk-made-up-0123456789"


class Asked(NamedTuple):
    """One request. `form` has the fields of a multipart body, files as (name, media type, bytes)."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, Any]:
        kind = self.headers["Content-Type"].encode()
        message: Any = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind + b"\r\n\r\n" + self.body)
        fields: dict[str, Any] = {}
        for part in message.iter_parts():
            content = part.get_payload(decode=True)
            file = part.get_filename()
            name = part.get_param("name", header="content-disposition")
            fields[name] = content.decode() if file is None else (file, part.get_content_type(), content)
        return fields


class Answer(NamedTuple):
    """What is sent; `before` happens first, `cut` ends the connection after so many bytes of the body."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    before: Callable[[], object] | None = None
    cut: int | None = None


def sleeping(seconds: float) -> Callable[[], object]:
    return lambda: time.sleep(seconds)


class Server:
    """Answers by `answer(asked)`; the answers in `faults` come first, those under "METHOD /path" for these alone."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.faults: list[Answer] = []
        self.faults_at: dict[str, list[Answer]] = {}
        self.files: dict[str, Answer] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, url.path, parse_qs(url.query), self.headers, body)
                self.send(outer.take(asked))

            do_POST = do_GET

            def send(self, answer: Answer) -> None:
                if answer.before:
                    answer.before()
                plain = isinstance(answer.body, bytes)
                content = answer.body if plain else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                kind = {} if plain else {"Content-Type": "application/json"}
                for name, value in {"Content-Length": str(len(content)), **kind, **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content if answer.cut is None else content[: answer.cut])
                self.close_connection = self.close_connection or answer.cut is not None

            def log_message(self, *_: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:  # the client has disconnected
                pass

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def take(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        at = self.faults_at.get(f"{asked.method} {asked.path}")
        if at:
            return at.pop(0)
        if asked.path in self.files:
            return self.files[asked.path]
        if self.faults:
            return self.faults.pop(0)
        return self.answer(asked)

    def answer(self, asked: Asked) -> Answer:
        return Answer({"error": {"message": f"no {asked.path} here"}}, 404)

    def host(self, name: str, content: bytes, **more: Any) -> str:
        """The URL of a file that the server has."""
        self.files[f"/files/{name}"] = Answer(content, **more)
        return f"{self.origin}/files/{name}"

    @property
    def paths(self) -> Counter[str]:
        return Counter(f"{each.method} {each.path}" for each in self.asked)


class Refused(Exception):
    """What the request does not fulfil."""


def needs(holds: object, why: str) -> None:
    if not holds:
        raise Refused(why)


class OpenAIServer(Server):
    """The media endpoints of OpenAI: parameters as the SDK's types have them, answers with the SDK's fields."""

    url_images = False
    spoken = samples.wav(1.5)

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("Authorization") != f"Bearer {KEY}":
            message = f"Incorrect API key provided: {asked.headers.get('Authorization')}."
            error = {"message": message, "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}
            return Answer({"error": error}, 401)
        endpoints = {
            "POST /v1/images/generations": self.generate,
            "POST /v1/images/edits": self.edit,
            "POST /v1/chat/completions": self.chat,
            "POST /v1/audio/speech": self.speech,
            "POST /v1/audio/transcriptions": self.transcription,
        }
        endpoint = endpoints.get(f"{asked.method} {asked.path}")
        if endpoint is None:
            return Answer({"error": {"message": "Not found", "type": "invalid_request_error", "code": None}}, 404)
        try:
            return endpoint(asked)
        except Refused as error:
            wrong = {"message": str(error), "type": "invalid_request_error", "param": None, "code": "invalid_value"}
            return Answer({"error": wrong}, 400)

    def images(self, n: int) -> Answer:
        def one() -> dict[str, str]:
            if self.url_images:
                return {"url": self.host("made.png", samples.png(64, 32)), "revised_prompt": "a cat"}
            return {"b64_json": base64.b64encode(samples.png(64, 32)).decode()}

        return Answer({"created": 1_790_000_000, "data": [one() for _ in range(n)], "usage": {"total_tokens": 7}})

    def generate(self, asked: Asked) -> Answer:
        body = asked.json
        needs(isinstance(body.get("prompt"), str), "prompt is required")
        needs(set(body) <= {"prompt", "model", "n", "size", "quality"}, f"unknown parameter in {sorted(body)}")
        needs(1 <= body.get("n", 1) <= 10, "n is 1 to 10")
        return self.images(body.get("n", 1))

    def edit(self, asked: Asked) -> Answer:
        form = asked.form
        needs(form.get("prompt"), "prompt is required")
        _, kind, content = form["image"]
        needs(kind in ("image/png", "image/jpeg", "image/webp") and content, "image is no image")
        needs("mask" not in form or form["mask"][1] == "image/png", "mask is no PNG")
        return self.images(int(form.get("n", "1")))

    def chat(self, asked: Asked) -> Answer:
        body = asked.json
        (message,) = body["messages"]
        parts = {part["type"]: part for part in message["content"]}
        needs(set(parts) == {"text", "image_url"}, "text and images, please")
        needs(parts["image_url"]["image_url"]["url"].startswith("data:image/"), "no image")
        reply = {"role": "assistant", "content": "A cat on a mat.", "refusal": None}
        choice = {"index": 0, "message": reply, "finish_reason": "stop", "logprobs": None}
        return Answer(
            {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        )

    def speech(self, asked: Asked) -> Answer:
        body = asked.json
        needs(set(body) <= {"model", "input", "voice", "response_format", "speed"}, "unknown parameter")
        needs(0 < len(body["input"]) <= 4096 and 0.25 <= body["speed"] <= 4, "out of range")
        known = {"mp3": samples.mp3(), "opus": samples.ogg(), "flac": samples.flac(), "wav": self.spoken}
        return Answer(known.get(body["response_format"], b"\xff\xf1" + bytes(20)), headers={"Content-Type": "audio/x"})

    def transcription(self, asked: Asked) -> Answer:
        form = asked.form
        needs(form["file"][2] and form["model"], "file and model are required")
        needs(0 <= float(form.get("temperature", "0")) <= 1, "temperature is 0 to 1")
        return Answer({"text": "Hello world.", "usage": {"type": "duration", "seconds": 2}})


class DashScopeServer(Server):
    """DashScope's endpoints; a job is pending, then running, then `outcome`."""

    def __init__(self) -> None:
        super().__init__()
        self.polls = 2  # before a job has succeeded
        self.outcome: dict[str, Any] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.cancelled: list[str] = []

    @property
    def base_url(self) -> str:
        return f"{self.origin}/api/v1"

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.removeprefix("/api/v1")
        if asked.path == "/storage" and asked.method == "POST":
            needs("Authorization" not in asked.headers, "the key does not belong here")
            return Answer(b"")
        if asked.headers.get("Authorization") != f"Bearer {KEY}":
            message = {"code": "InvalidApiKey", "message": f"Invalid key {asked.headers.get('Authorization')}."}
            return Answer({**message, "request_id": "r-1"}, 401)
        try:
            output = self.output(path, asked)
        except (Refused, KeyError) as error:
            return Answer({"code": "InvalidParameter", "message": str(error), "request_id": "r-1"}, 400)
        if output is None:
            return Answer({"code": "InvalidURL", "message": "url error", "request_id": "r-1"}, 404)
        if path == "/uploads":
            return Answer({"data": output, "request_id": "r-1"})
        return Answer({"output": output, "usage": {}, "request_id": "r-1"})

    def output(self, path: str, asked: Asked) -> dict[str, Any] | None:
        if path.startswith("/tasks/"):
            return self.task(path, asked)
        if path == "/uploads":
            needs(asked.query["action"] == ["getPolicy"] and asked.query["model"], "action and model")
            policy = {"policy": "p", "signature": "s", "upload_dir": "dashscope/here", "oss_access_key_id": "a"}
            acl = {"x_oss_object_acl": "private", "x_oss_forbid_overwrite": "true", "max_file_size_mb": 100}
            return {**policy, **acl, "upload_host": f"{self.origin}/storage", "expire_in_seconds": 300}
        service = path.removeprefix("/services/")
        if service in self.SYNC:
            needs(asked.headers.get("X-DashScope-Async") is None, "this answers at once")
            return self.SYNC[service](self, asked.json)
        if service in self.ASYNC:
            needs(
                asked.headers.get("X-DashScope-Async") == "enable",
                "current user api does not support synchronous calls",
            )
            job = f"job-{len(self.jobs) + 1}"
            self.jobs[job] = {"left": self.polls, "output": self.ASYNC[service](self, asked.json)}
            return {"task_id": job, "task_status": "PENDING"}
        return None

    def task(self, path: str, asked: Asked) -> dict[str, Any] | None:
        job = path.split("/")[2]
        if path.endswith("/cancel") and asked.method == "POST":
            self.cancelled.append(job)
            return {}
        known = self.jobs.get(job)
        if known is None:
            return {"task_id": job, "task_status": "UNKNOWN"}
        known["left"] -= 1
        if known["left"] >= 0:
            return {"task_id": job, "task_status": "RUNNING" if known["left"] == 0 else "PENDING"}
        return {"task_id": job, "task_status": "SUCCEEDED", **known["output"], **self.outcome}

    # What each service takes and gives ---------------------------------------------------------------------------

    def multimodal(self, body: Any) -> dict[str, Any]:
        asked = body["input"]
        if "text" in asked:
            needs(asked["voice"] and asked["text"], "voice and text")
            url = self.host("spoken.wav", samples.wav(1.5))
            return {"audio": {"data": "", "url": url, "id": "audio_1", "expires_at": 1}, "finish_reason": "stop"}
        (message,) = asked["messages"]
        needs(message["role"] == "user" and message["content"], "a user's message")
        kinds = {key for part in message["content"] for key in part}
        if kinds == {"text"}:
            content = [{"image": self.host("made.png", samples.png(64, 32))}]
        elif "audio" in kinds:
            content = [{"text": "Hello world."}]
        else:
            needs("text" in kinds, "a question")
            content = [{"text": "A cat "}, {"text": "on a mat."}]
        return {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": content}}]}

    def tts(self, body: Any) -> dict[str, Any]:
        needs({"text", "voice", "format", "sample_rate"} <= set(body["input"]), "text, voice, format, sample_rate")
        return {"audio": {"url": self.host("spoken.wav", samples.wav(1.5)), "data": "", "id": "a", "expires_at": 1}}

    def image_by_text(self, body: Any) -> dict[str, Any]:
        needs(body["input"]["prompt"] and "*" in body["parameters"]["size"], "prompt and size")
        n = body["parameters"]["n"]
        urls = [self.host(f"made{number}.png", samples.png(64, 32)) for number in range(n)]
        return {"results": [{"url": url} for url in urls], "task_metrics": {"TOTAL": n, "SUCCEEDED": n, "FAILED": 0}}

    def image_by_message(self, body: Any) -> dict[str, Any]:
        return self.multimodal(body)

    def video(self, body: Any) -> dict[str, Any]:
        needs(body["input"].get("prompt") or body["input"].get("img_url"), "prompt or image")
        needs(None not in body["input"].values() and None not in body["parameters"].values(), "no nulls")
        return {"video_url": self.host("made.mp4", samples.mp4(4.0)), "orig_prompt": body["input"].get("prompt", "")}

    def frames(self, body: Any) -> dict[str, Any]:
        needs(body["input"]["first_frame_url"] and body["input"]["last_frame_url"], "two frames")
        return {"video_url": self.host("made.mp4", samples.mp4(4.0))}

    def transcription(self, body: Any) -> dict[str, Any]:
        texts = {"file_url": "A url", "transcripts": [{"channel_id": 0, "text": "Hello world."}]}
        url = self.host("transcript.json", json.dumps(texts).encode())
        done = {"file_url": "A url", "transcription_url": url, "subtask_status": "SUCCEEDED"}
        if "file_url" in body["input"]:
            return {"result": {"transcription_url": url}}
        return {"results": [done for _ in body["input"]["file_urls"]]}

    SYNC: Mapping[str, Callable[..., dict[str, Any]]] = {
        "aigc/multimodal-generation/generation": multimodal,
        "audio/tts/SpeechSynthesizer": tts,
    }
    ASYNC: Mapping[str, Callable[..., dict[str, Any]]] = {
        "aigc/text2image/image-synthesis": image_by_text,
        "aigc/image-generation/generation": image_by_message,
        "aigc/video-generation/video-synthesis": video,
        "aigc/image2video/video-synthesis": frames,
        "audio/asr/transcription": transcription,
    }


@contextmanager
def running(server: Server) -> Iterator[Any]:
    try:
        yield server
    finally:
        server.close()
