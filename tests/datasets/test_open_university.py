"""Students, their assessments, and how their courses ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxflip.datasets import aggregates, oulad
from maxflip.errors import InputError
from tests.real_data import real_data

TABLES = {
    "assessments": """code_module,code_presentation,id_assessment,assessment_type,date,weight
AAA,2013J,6,TMA,19,10
AAA,2013J,2,CMA,54,20.5
AAA,2013J,3,Exam,?,100
BBB,2013J,4,TMA,30,50
""",
    "studentAssessment": """id_assessment,id_student,date_submitted,is_banked,score
2,11,60,0,70
6,11,18,0,78
3,11,200,0,90
6,12,-1,1,?
4,12,30,0,40
4,99,30,0,40
""",
    "studentInfo": """\
id_student,code_module,code_presentation,disability,num_of_prev_attempts,studied_credits,final_result
12,BBB,2013J,N,1,60,Withdrawn
11,AAA,2013J,Y,0,240,Pass
12,AAA,2013J,N,2,120,Fail
13,AAA,2013J,N,0,30,Distinction
""",
}


def write(folder: Path, **replaced: str) -> Path:
    for name, text in (TABLES | replaced).items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_a_sequence_per_student_and_course_by_due_date(tmp_path: Path) -> None:
    students = oulad(write(tmp_path))
    assert students.ids == ("BBB/2013J/12", "AAA/2013J/11", "AAA/2013J/12")
    assert students.features == ("score", "days_late", "weight", "is_tma", "is_banked")
    assert students.values[1].tolist() == [[78, -1, 10, 1, 0], [70, 6, 20.5, 0, 0]]
    assert students.times[1].tolist() == [19, 54]
    np.testing.assert_array_equal(students.values[2], [[np.nan, -20, 10, 1, 1]])
    assert [students.classes[label] for label in students.labels] == ["Withdrawn", "Pass", "Fail"]
    assert students.static.tolist() == [[1, 60, 0], [0, 240, 1], [2, 120, 0]]
    assert students.cohort().ids.tolist() == list(students.ids)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    assert dict(oulad(write(tmp_path)).dropped) == {
        "submissions that match no student": 1,
        "exams": 1,
        "students without an assessment": 1,
    }


def test_aggregates(tmp_path: Path) -> None:
    scored = "id_assessment,id_student,date_submitted,is_banked,score\n6,11,18,0,78\n2,11,60,0,?\n6,12,19,0,40\n"
    students = oulad(write(tmp_path, studentAssessment=scored))
    table = aggregates(students)
    assert table.features == (
        *("mean_score", "min_score", "max_score", "last_score"),
        *("assessments", "mean_days_late", "total_weight"),
    )
    assert table.values.tolist() == [[78, 78, 78, 78, 2, 2.5, 30.5], [40, 40, 40, 40, 1, 0, 10]]
    assert table.ids == students.ids


def test_aggregates_need_a_score(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 sequence without a single score: 'AAA/2013J/12'"):
        aggregates(oulad(write(tmp_path)))


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("assessments", "TMA,19", "TMA,?", "row 1: assessment 6 is no exam and has no date."),
        ("assessments", "CMA", "XMA", "row 2: assessment_type is 'XMA'; wanted one of 'TMA', 'CMA', 'Exam'."),
        ("assessments", "weight", "wait", "has no column 'weight'."),
        ("studentAssessment", "\n2,11,", "\n7,11,", "row 1: assessments.csv has no assessment 7."),
        ("studentAssessment", "6,11,18", "6,11,?", "row 2: column 'date_submitted' is empty."),
        ("studentInfo", "Pass", "Passed", "row 2: final_result is 'Passed'; wanted one of 'Pass'"),
        ("studentInfo", "13,AAA", "12,AAA", "some students occur twice in one course."),
        ("studentInfo", "N,2,", "maybe,2,", "row 3: disability is 'maybe'; wanted one of 'Y', 'N'."),
    ],
)
def test_faults_are_named(tmp_path: Path, table: str, old: str, new: str, message: str) -> None:
    assert old in TABLES[table]
    write(tmp_path, **{table: TABLES[table].replace(old, new, 1)})
    with pytest.raises(InputError) as caught:
        oulad(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / table}.csv: {message}")


def test_nobody_matches(tmp_path: Path) -> None:
    header, *_ = TABLES["studentInfo"].splitlines()
    write(tmp_path, studentInfo=f"{header}\n1,ZZZ,2013J,N,0,30,Pass\n")
    with pytest.raises(InputError, match=r"no row belongs to a student of studentInfo\.csv"):
        oulad(tmp_path)


def test_the_real_courses() -> None:
    students = oulad(real_data("oulad"))
    assert len(students) == 24_818
    counts = dict(zip(students.classes, np.bincount(students.labels).tolist(), strict=True))
    assert counts == {"Pass": 11_824, "Fail": 5_636, "Withdrawn": 4_533, "Distinction": 2_825}
    lengths = [len(steps) for steps in students.values]
    assert (min(lengths), max(lengths), sum(lengths)) == (1, 13, 161_439)
    assert dict(students.dropped) == {
        "submissions that match no student": 7_696,
        "exams": 4_604,
        "students without an assessment": 6_664,
    }
    assert all((np.diff(times) >= 0).all() for times in students.times)


def test_a_logistic_regression_on_the_real_aggregates() -> None:
    """docs/data.md states the figure."""
    table = aggregates(oulad(real_data("oulad")))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(model, table.values, table.labels, cv=folds).mean() == pytest.approx(0.631, abs=2e-3)
