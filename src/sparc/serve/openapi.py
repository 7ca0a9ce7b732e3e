"""What the API takes and gives: as OpenAPI, and as a page made from it."""

from typing import Any

from starlette.responses import HTMLResponse, Response

from sparc import __version__
from sparc.predictor import USUAL_SHARE
from sparc.report.svg import safe
from sparc.serve.teaching import SETTINGS

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
YES_NO: Schema = {"type": "boolean"}
FILES: Schema = {"type": "array", "items": {"type": "string", "format": "binary"}}
ERROR = {"$ref": "#/components/schemas/Error"}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _maybe(of: Schema) -> Schema:
    return {"anyOf": [of, {"type": "null"}]}


def _described(of: Schema, text: str) -> Schema:
    return {**of, "description": text}


PREDICTION = _object(**{"class": TEXT, "probability": NUMBER})
SCHEMAS: dict[str, Schema] = {
    "Error": _object(error=_described(TEXT, "What is wrong, and what to do, in one sentence.")),
    "Predictions": _object(
        model=TEXT,
        pictures=_list(
            _object(
                name=TEXT,
                none_of_these=_described(YES_NO, "The picture is stranger than pictures of known classes are."),
                tasks=_described(_list(TEXT), "Those that have taught the first class."),
                predictions=_described(_list(PREDICTION), "Likeliest first."),
                error=_described(TEXT, "In place of the others, why the picture cannot be read."),
            )
        ),
    ),
    "Progress": _object(
        state=_described(TEXT, "idle, starting, reading, learning, saving; learned, failed, stopped or died."),
        number=_described(WHOLE, "Counts the tasks that this server was given."),
        task=TEXT,
        pictures=WHOLE,
        seconds=NUMBER,
        share=_described(_maybe(NUMBER), "Of what is being done now, from 0 to 1."),
        seconds_left=_maybe(NUMBER),
        loss=_maybe(NUMBER),
        accuracy=_described(_maybe(NUMBER), "Of the pictures held out, in percent."),
        epoch=_maybe(WHOLE),
        epochs=_maybe(WHOLE),
        stopping=YES_NO,
        message=_described(TEXT, "How it ended, for people."),
        learned=_described(_maybe({"type": "object"}), "What sparc learn --json says."),
    ),
    "Model": _object(
        name=TEXT,
        exists=YES_NO,
        trouble=_described(TEXT, "Why a file that was changed since is not what is served."),
        classes=_list(
            _object(name=TEXT, pictures=WHOLE, tasks=_list(TEXT), learned=TEXT, most_like=_maybe(TEXT)),
        ),
        tasks=_described(_list({"type": "object"}), "As sparc inspect --json has them."),
        bytes=WHOLE,
    ),
    "Test": _object(
        pictures=WHOLE,
        accuracy_in_all=_described(NUMBER, "In percent, among all classes."),
        accuracy_in_task=_maybe(NUMBER),
        calibration_error=_maybe(NUMBER),
        known_accepted=_described(_maybe(NUMBER), "In percent, how many are not taken for none of these."),
        classes=_list(_object(**{"class": TEXT, "pictures": WHOLE, "right": WHOLE, "taken_for": {"type": "object"}})),
        skipped=_list(_object(path=TEXT, reason=TEXT)),
    ),
    "Message": _object(message=TEXT),
}


def _query(name: str, of: Schema, text: str) -> Schema:
    return {"name": name, "in": "query", "schema": of, "description": text}


def _form(text: str, properties: dict[str, Schema], further: Schema | None = None) -> Schema:
    schema = {**_object(**properties), **({"additionalProperties": further} if further else {})}
    return {"required": True, "description": text, "content": {"multipart/form-data": {"schema": schema}}}


def _json(**properties: Schema) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": _object(**properties)}}}


def _gives(name: str, status: int = 200) -> Schema:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {str(status): {"description": name, "content": content}}


def _file(kind: str) -> Schema:
    return {"200": {"description": "The file.", "content": {kind: {"schema": {"type": "string", "format": "binary"}}}}}


BY_CLASS = "Each picture is a file in a field named after its class."
_ONE_PICTURE: Schema = {"schema": {"type": "string", "format": "binary"}}
PREDICT_BODY = _form("A picture, or many as files of a form.", {"picture": FILES})
PREDICT_BODY["content"]["image/*"] = _ONE_PICTURE
PATHS: dict[str, tuple[str, str, Schema]] = {
    "/predict": (
        "post",
        "Name what is in pictures",
        {
            "parameters": [
                _query("top", WHOLE, "How many classes to name for each picture; 5."),
                _query("task", TEXT, "Only choose among this task's classes."),
                _query("reject", NUMBER, f"The share of known pictures that pass as such; {USUAL_SHARE:g}."),
                _query("always", YES_NO, "Name a class in any case."),
            ],
            "requestBody": PREDICT_BODY,
            "responses": _gives("Predictions"),
        },
    ),
    "/learn": (
        "post",
        "Begin to learn a task; the file is replaced when it has been learned",
        {
            "requestBody": _form(BY_CLASS, {name: _described(TEXT, text) for name, text in SETTINGS.items()}, FILES),
            "responses": _gives("Progress", 202),
        },
    ),
    "/progress": ("get", "How far learning is, or how it ended", {"responses": _gives("Progress")}),
    "/stop": ("post", "Stop learning; the model stays as it was", {"responses": _gives("Progress")}),
    "/model": ("get", "What the model knows", {"responses": _gives("Model")}),
    "/test": (
        "post",
        "Count how many pictures of known classes are named right",
        {"requestBody": _form(BY_CLASS, {}, FILES), "responses": _gives("Test")},
    ),
    "/rename": (
        "post",
        "Call a class, or a task, by another name",
        {
            "requestBody": _json(old=TEXT, new=TEXT, kind=_described(TEXT, "class or task")),
            "responses": _gives("Message"),
        },
    ),
    "/forget": (
        "post",
        "Take classes, or a task, out for good",
        {"requestBody": _json(classes=_list(TEXT), task=TEXT), "responses": _gives("Message")},
    ),
    "/download/model": ("get", "The model file", {"responses": _file("application/octet-stream")}),
    "/download/onnx": ("get", "The model as ONNX", {"responses": _file("application/octet-stream")}),
    "/download/card": ("get", "The model card", {"responses": _file("text/markdown")}),
    "/figures": (
        "get",
        "Growth and accuracy task after task, as SVG for the page",
        {
            "responses": {
                "200": {
                    "description": "SVG",
                    "content": {"application/json": {"schema": _object(figures=_list(TEXT))}},
                }
            }
        },
    ),
}


def specification() -> dict[str, Any]:
    paths = {}
    for path, (method, summary, rest) in PATHS.items():
        refused = {"description": "What is wrong.", "content": {"application/json": {"schema": ERROR}}}
        paths[path] = {
            method: {
                "summary": summary,
                "operationId": path.strip("/").replace("/", "_"),
                **rest,
                "responses": {**rest["responses"], "4XX": refused},
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "sparc serve", "version": __version__, "description": "A model that is taught and asked."},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def api_page(url: str, token: bool) -> Response:
    """Every path with what it takes and gives; needs no script."""
    header = " -H 'Authorization: Bearer TOKEN'" if token else ""
    parts = "".join(_path(path, *entry) for path, entry in PATHS.items())
    schemas = "".join(
        f'<section><h3 id="{name}">{name}</h3>{_properties(schema)}</section>' for name, schema in SCHEMAS.items()
    )
    extra = ', "Authorization": "Bearer TOKEN"' if token else ""
    return HTMLResponse(f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API – sparc serve</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/page.css">
</head>
<body class="api">
<header><h1>API</h1><p><a href="/">Back to the page</a> · <a href="/openapi.json">openapi.json</a></p></header>
<main>
<h2>From a terminal</h2>
<pre tabindex="0"><code>curl{header} -F picture=@cat.jpg {safe(url)}/predict
curl{header} -F task=pets -F cat=@1.jpg -F cat=@2.jpg -F dog=@3.jpg -F dog=@4.jpg {safe(url)}/learn
curl{header} {safe(url)}/progress</code></pre>
<h2>From Python</h2>
<pre tabindex="0"><code>import json, urllib.request

picture = open("cat.jpg", "rb").read()
headers = {{"Content-Type": "image/jpeg"{extra}}}
request = urllib.request.Request("{safe(url)}/predict", picture, headers)
print(json.load(urllib.request.urlopen(request))["pictures"][0]["predictions"])</code></pre>
<p>What is refused comes with a status of 4xx and <code>{{"error": "…"}}</code>, one sentence that says what is
wrong and what to do.</p>
<h2>Paths</h2>
{parts}
<h2>What comes back</h2>
{schemas}
</main>
</body>
</html>
""")


def _path(path: str, method: str, summary: str, rest: Schema) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>?{safe(each['name'])}=</code></th><td>{safe(each['description'])}</td></tr>"
        for each in rest.get("parameters", [])
    )
    body = rest.get("requestBody")
    if body:
        for kind, content in body["content"].items():
            rows += f"<tr><th scope=row>{safe(kind)}</th><td>{safe(body.get('description', ''))}</td></tr>"
            for name, schema in content["schema"].get("properties", {}).items():
                rows += f"<tr><th scope=row><code>{safe(name)}</code></th><td>{safe(_kind(schema))}</td></tr>"
    for status, answer in rest["responses"].items():
        kind, content = next(iter(answer["content"].items()))
        name = content["schema"].get("$ref", "").rpartition("/")[2]
        gives = f'<a href="#{name}">{name}</a>' if name else safe(kind)
        rows += f"<tr><th scope=row>{status}</th><td>{gives}</td></tr>"
    return (
        f"<section><h3><code>{method.upper()} {safe(path)}</code></h3><p>{safe(summary)}.</p>"
        f'<div class="scroll" tabindex="0"><table class="texts"><tbody>{rows}</tbody></table></div></section>'
    )


def _properties(schema: Schema) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{safe(name)}</code></th><td>{safe(_kind(each))}</td></tr>"
        for name, each in schema["properties"].items()
    )
    return f'<div class="scroll" tabindex="0"><table class="texts"><tbody>{rows}</tbody></table></div>'


def _kind(schema: Schema) -> str:
    """What a value is, in a few words."""
    text = schema.get("description", "")
    if "anyOf" in schema:
        kind = f"{_kind(schema['anyOf'][0])}, or null"
    elif schema.get("format") == "binary":
        kind = "file"
    elif schema["type"] == "array":
        kind = f"list of {_kind(schema['items'])}"
    elif schema["type"] == "object" and "properties" in schema:
        kind = "{" + ", ".join(schema["properties"]) + "}"
    else:
        kind = schema["type"]
    return f"{kind}: {text}" if text else kind
