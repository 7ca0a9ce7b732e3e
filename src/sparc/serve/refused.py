"""What a request is refused with: one sentence, as on the command line, and a status of HTTP."""

from starlette.responses import JSONResponse

from sparc.errors import InputError
from sparc.text import one_line


class RefusedError(InputError):
    """A request that is not answered for another reason than that its content is wrong, which has the status 400."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def refusal(error: InputError) -> JSONResponse:
    status = error.status if isinstance(error, RefusedError) else 400
    # Whoever is refused may have more to send, which nobody waits for.
    return JSONResponse({"error": one_line(str(error))}, status, {"Connection": "close"})
