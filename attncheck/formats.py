"""A report in the forms that other tools read."""

import json
from xml.etree import ElementTree

from attncheck.mistakes import MISTAKES
from attncheck.report import shown

LEVELS = {"error": "error", "warning": "warning", "note": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def rendered(report, how, target):
    """Return the report as a text in one of :data:`FORMATS`."""
    return FORMATS[how](report, target)


def as_text(report, target):
    """Return what a person reads."""
    return str(report)


def as_dictionary(report):
    """Return the report as plain lists and dictionaries."""
    return {
        "subject": report.subject,
        "headline": report.headline(),
        "ok": report.ok,
        "exit_status": report.exit_status,
        "usable": report.usable,
        "problem": report.problem,
        "not_compared": report.not_compared,
        "findings": [_finding(finding) for finding in report.findings],
        "tests": [
            {"test": r.test, "outcome": r.outcome, "why": r.why} for r in report.results
        ],
        "notes": list(report.notes),
    }


def _finding(finding):
    told = {
        "code": finding.code,
        "mistake": finding.mistake,
        "severity": finding.severity,
        "title": finding.title,
        "test": finding.test,
        "done": finding.done,
        "seen": finding.seen,
        "means": finding.means,
        "suggestion": finding.line,
        "page": finding.page,
    }
    if finding.place:
        file, line, text = finding.place
        told["place"] = {"file": shown(file), "line": line, "text": text}
    if finding.example is not None:
        expected, actual = finding.example
        told["expected_weights"] = expected.tolist()
        told["actual_weights"] = actual.tolist()
    return told


def as_json(report, target):
    """Return one JSON object."""
    return json.dumps(as_dictionary(report), indent=2, ensure_ascii=False)


def as_sarif(report, target):
    """Return SARIF 2.1.0, which code hosts show beside the lines."""
    names = [finding.mistake for finding in report.findings]
    rules = [
        {
            "id": MISTAKES[name].code,
            "name": name,
            "shortDescription": {"text": MISTAKES[name].title},
            "fullDescription": {"text": MISTAKES[name].means},
            "help": {"text": MISTAKES[name].line},
        }
        for name in dict.fromkeys(names)
    ]
    results = [
        {
            "ruleId": finding.code,
            "level": LEVELS[finding.severity],
            "message": {"text": f"{finding.title}. {finding.seen} {finding.means}"},
            "locations": [_sarif_place(finding, target)],
        }
        for finding in report.findings
    ]
    run = {
        "tool": {"driver": {"name": "attention.check", "rules": rules}},
        "results": results,
        "invocations": [{"executionSuccessful": report.usable}],
    }
    if not report.usable:
        note = {"level": "error", "message": {"text": report.problem}}
        run["invocations"][0]["toolExecutionNotifications"] = [note]
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_place(finding, target):
    file, line = target.partition(":")[0], 1
    region = {"startLine": line}
    if finding.place:
        file, line, text = finding.place
        region = {"startLine": line, "snippet": {"text": text}}
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": shown(file)},
            "region": region,
        }
    }


def as_github(report, target):
    """Return workflow commands, which put findings beside the lines of a change."""
    if not report.usable:
        return f"::error title={_escaped(report.subject)}::{_escaped(report.problem)}"
    commands = {"error": "error", "warning": "warning", "note": "notice"}
    lines = []
    for finding in report.findings:
        file, line = target.partition(":")[0], 1
        if finding.place:
            file, line, _ = finding.place
        title = _escaped(f"{finding.code} {finding.title}", more=True)
        where = f"file={_escaped(shown(file), more=True)},line={line},title={title}"
        text = _escaped(f"{finding.seen}\n{finding.means}\nMeant: {finding.line}")
        lines.append(f"::{commands[finding.severity]} {where}::{text}")
    lines.append(report.headline())
    return "\n".join(lines)


def _escaped(text, more=False):
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if more else text


def as_junit(report, target):
    """Return JUnit XML: a test case for each test."""
    results = report.results
    suite = ElementTree.Element("testsuite", name="attention.check")
    failures = errors = skipped = 0
    if not report.usable:
        case = ElementTree.SubElement(suite, "testcase", _case(report, "usable"))
        ElementTree.SubElement(case, "error", message=report.problem)
        errors = 1
    by_name = {finding.mistake: finding for finding in report.findings}
    untold = dict(by_name)
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", _case(report, result.test))
        if result.outcome == "not run":
            ElementTree.SubElement(case, "skipped", message=result.why)
            skipped += 1
        elif result.outcome == "broken":
            ElementTree.SubElement(case, "error", message=result.why)
            errors += 1
        elif result.outcome == "failed":
            told = [by_name[name] for name in result.mistakes if name in by_name]
            told = [f for f in told if f.severity == "error" or report.strict]
            for finding in told:
                untold.pop(finding.mistake, None)
            if told:
                title = "; ".join(f"{f.code} {f.title}" for f in told)
                failure = ElementTree.SubElement(case, "failure", message=title)
                failure.text = "\n".join(f"{f.seen} {f.means}" for f in told)
                failures += 1
    counts = {"tests": len(suite), "failures": failures, "errors": errors,
              "skipped": skipped}  # fmt: skip
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    return ElementTree.tostring(suite, encoding="unicode")


def _case(report, name):
    return {"classname": report.subject, "name": name}


FORMATS = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
    "junit": as_junit,
}
