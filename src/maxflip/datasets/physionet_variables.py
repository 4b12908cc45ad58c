"""The parameters of PhysioNet 2012: those used, their units and plausible ranges."""

from __future__ import annotations

from collections.abc import Mapping

from maxflip._util.frozen import FrozenMap

# Variable: (unit, smallest plausible value, largest plausible value). The 33 variables used with GRU-D.
VARIABLES: Mapping[str, tuple[str, float, float]] = FrozenMap(
    {
        "ALP": ("IU/L", 1, 5000),
        "ALT": ("IU/L", 1, 20000),
        "AST": ("IU/L", 1, 30000),
        "Albumin": ("g/dL", 0.5, 7),
        "BUN": ("mg/dL", 1, 300),
        "Bilirubin": ("mg/dL", 0.1, 80),
        "Cholesterol": ("mg/dL", 10, 1000),
        "Creatinine": ("mg/dL", 0.1, 30),
        "DiasABP": ("mmHg", 1, 200),
        "FiO2": ("fraction", 0.21, 1),
        "GCS": ("points", 3, 15),
        "Glucose": ("mg/dL", 10, 2000),
        "HCO3": ("mmol/L", 1, 60),
        "HCT": ("%", 5, 75),
        "HR": ("bpm", 10, 300),
        "K": ("mEq/L", 1, 15),
        "Lactate": ("mmol/L", 0.1, 40),
        "MAP": ("mmHg", 10, 250),
        "Mg": ("mmol/L", 0.3, 15),
        "Na": ("mEq/L", 90, 200),
        "PaCO2": ("mmHg", 5, 200),
        "PaO2": ("mmHg", 10, 700),
        "Platelets": ("cells/nL", 1, 2500),
        "RespRate": ("bpm", 1, 100),
        "SaO2": ("%", 10, 100),
        "SysABP": ("mmHg", 20, 300),
        "Temp": ("°C", 25, 45),
        "TroponinI": ("μg/L", 0, 200),
        "TroponinT": ("μg/L", 0, 100),
        "Urine": ("mL", 0, 5000),
        "WBC": ("cells/nL", 0.1, 500),
        "Weight": ("kg", 20, 400),
        "pH": ("", 6.5, 8),
    }
)
LEFT_OUT = ("MechVent", "NIDiasABP", "NIMAP", "NISysABP")  # for the reasons in docs/data.md
DESCRIPTORS: Mapping[str, tuple[float, float]] = FrozenMap(
    {"Age": (0, 120), "Gender": (0, 1), "Height": (100, 250), "ICUType": (1, 4), "Weight": (20, 400)}
)
UNKNOWN = -1.0  # value of unknown descriptors in the source
LABS = ("BUN", "Creatinine", "Glucose", "HCO3", "HCT", "K", "Na", "Platelets", "WBC")  # nine of the paper's 13
KNOWN = frozenset({"RecordID", *DESCRIPTORS, *VARIABLES, *LEFT_OUT})
