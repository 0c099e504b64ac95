from __future__ import annotations

from arena.publish.fields import tables


def test_every_field_of_the_results_file_has_a_type_and_a_description() -> None:
    found = tables()
    assert {"ResultsFile", "Run", "Result", "Trials", "Seen", "Leg", "Found", "Sentence"} <= {
        t.name for t in found
    }
    for table in found:
        for field in table.fields:
            assert field.description, f"{table.name}.{field.name} has no description"
            assert "typing" not in field.type and "<class" not in field.type
