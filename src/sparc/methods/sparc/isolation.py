"""Complete isolation: SPARC with no semantic memory, so that tasks share nothing at all.

The ablation of Bhat et al., "Continual Learning Beyond Experience Rehearsal and Full Model Surrogates", ICML 2025: what
sharing half of the point-wise filters costs in accuracy, and saves in parameters.
"""

from dataclasses import asdict
from typing import Any

from sparc.methods.sparc.settings import RenormalizationSettings, SparcSettings
from sparc.methods.sparc.sparc import SPARC


class Isolation(SPARC):
    name = "isolation"
    title = "complete isolation"
    Settings = RenormalizationSettings

    def __init__(self, settings: RenormalizationSettings, *rest: Any) -> None:
        super().__init__(SparcSettings(**asdict(settings), shared=0), *rest)
