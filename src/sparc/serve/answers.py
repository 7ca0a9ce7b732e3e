"""Answers in JSON, of which those that refuse say why in the sentences of the command line."""

from starlette.responses import JSONResponse

from sparc.errors import InputError
from sparc.serve.refused import status_of
from sparc.text import one_line


def refusal(error: InputError) -> JSONResponse:
    # Whoever is refused may have more to send, which nobody waits for.
    return JSONResponse({"error": one_line(str(error))}, status_of(error), {"Connection": "close"})
