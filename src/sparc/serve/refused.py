"""What a request is refused with: the sentence of an `InputError`, and a status of HTTP."""

from sparc.errors import InputError


class RefusedError(InputError):
    """A request that is not to be answered, for another reason than what stands in it."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def status_of(error: InputError) -> int:
    return error.status if isinstance(error, RefusedError) else 400
