"""Complete isolation: SPARC with no semantic memory, so that tasks share nothing at all.

The ablation of Bhat et al., "Continual Learning Beyond Experience Rehearsal and Full Model Surrogates", ICML 2025: what
sharing half of the point-wise filters costs in accuracy, and saves in parameters.
"""

from typing import Any

from sparc.methods.sparc import SPARC, RenormalizationSettings, SparcSettings


class Isolation(SPARC):
    name = "isolation"
    title = "complete isolation"
    Settings = RenormalizationSettings

    def __init__(self, settings: RenormalizationSettings, *rest: Any) -> None:
        super().__init__(SparcSettings(settings.width, settings.depth, shared=0, kappa=settings.kappa), *rest)
