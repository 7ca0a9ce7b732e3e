"""What a request asks, beside its pictures."""

import json
from collections.abc import Collection
from typing import Any

from starlette.requests import Request

from sparc.edit import Kind
from sparc.errors import InputError
from sparc.predictor import USUAL_SHARE, check_passing
from sparc.serve.asking import Question
from sparc.serve.refused import RefusedError


def question_of(request: Request) -> Question:
    query = request.query_params
    _check_names(query.keys(), {"top", "task", "reject", "always"})
    top = query.get("top", "5")
    if not top.isdecimal() or len(top) > 6 or int(top) < 1:
        raise InputError(f"top {top[:20]} names nothing: give at least 1")
    always = query.get("always", "").lower() in ("1", "true", "yes")
    share = USUAL_SHARE
    if "reject" in query:
        try:
            share = float(query["reject"])
        except ValueError:
            raise InputError(f"reject {query['reject'][:20]} is no number: give one between 0 and 1") from None
        check_passing(share)
        if always:
            raise InputError("reject and always say opposite things: give one of them")
    return Question(int(top), query.get("task"), None if always else share)


async def json_of(request: Request, names: Collection[str]) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "this takes JSON: send it with the header Content-Type: application/json")
    content = b"".join([chunk async for chunk in request.stream()])
    if len(content) > 2**20:
        raise RefusedError(413, "this takes a few names, and much more was sent: send fewer")
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError('what was sent is no JSON: send an object, such as {"classes": ["cat"]}') from error
    if not isinstance(given, dict):
        raise InputError('what was sent is no JSON object: send one, such as {"classes": ["cat"]}')
    _check_names(given, names)
    return given


def _check_names(given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"“{name[:40]}” is not known here: there are {', '.join(sorted(known))}")


def text_of(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise InputError(f"“{name}” is missing, or no text: give a name")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"“{name}” is no text that can be written: give a name") from error
    return value


def kind_of(given: dict[str, Any]) -> Kind:
    kind = given.get("kind", "class")
    if kind not in ("class", "task"):
        raise InputError("“kind” is class or task: give one of them")
    return "class" if kind == "class" else "task"
