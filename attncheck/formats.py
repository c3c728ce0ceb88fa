"""A report in the forms that other tools read."""

import contextlib
import datetime
import json
import platform
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any
from xml.etree import ElementTree

from attncheck.mistakes import MISTAKES
from attncheck.report import Finding, Report, shown, worst

Reports = Sequence[tuple[Report, str]]  # each with its target
LEVELS = {"error": "error", "warning": "warning", "note": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def rendered(reports: Reports, how: str) -> str:
    """Return reports, pairs of one and its target, as a text in a form."""
    return FORMATS[how](reports)


def as_text(reports: Reports) -> str:
    """Return what a person reads."""
    text = "\n\n\n".join(str(report) for report, _ in reports)
    if len(reports) < 2:
        return text
    counts = Counter(report.verdict for report, _ in reports)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"{text}\n\n\n{len(reports)} classes: {told}"


def as_dictionary(report: Report) -> dict[str, Any]:
    """Return the report as plain lists and dictionaries."""
    return {
        "subject": report.subject,
        "headline": report.headline(),
        "ok": report.ok,
        "verdict": report.verdict,
        "exit_status": report.exit_status,
        "usable": report.usable,
        "problem": report.problem,
        "not_compared": report.not_compared,
        "command": report.command,
        "needed": report.needed,
        "findings": [_finding(finding) for finding in report.findings],
        "tests": [
            {"test": r.test, "outcome": r.outcome, "why": r.why} for r in report.results
        ],
        "notes": list(report.notes),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    told: dict[str, Any] = {
        "code": finding.code,
        "stage": finding.stage,
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


def as_json(reports: Reports) -> str:
    """Return one JSON object; of several classes, one that holds all."""
    told = [as_dictionary(report) for report, _ in reports]
    statuses = {"exit_status": worst([report for report, _ in reports])}
    whole = told[0] if len(told) == 1 else statuses | {"reports": told}
    return json.dumps(whole, indent=2, ensure_ascii=False)


def as_sarif(reports: Reports) -> str:
    """Return SARIF 2.1.0, which code hosts show beside the lines."""
    found = [(finding, target) for report, target in reports
             for finding in report.findings]  # fmt: skip
    rules = [
        {
            "id": MISTAKES[name].code,
            "name": name,
            "shortDescription": {"text": MISTAKES[name].title},
            "fullDescription": {"text": MISTAKES[name].means},
            "help": {"text": MISTAKES[name].line},
        }
        | _linked("helpUri", MISTAKES[name].code)
        for name in dict.fromkeys(finding.mistake for finding, _ in found)
    ]
    results = [
        {
            "ruleId": finding.code,
            "level": LEVELS[finding.severity],
            "message": {"text": f"{finding.title}. {finding.seen} {finding.means}"},
            "locations": [_sarif_place(finding, target)],
        }
        for finding, target in found
    ]
    usable = all(report.usable for report, _ in reports)
    invocation: dict[str, Any] = {"executionSuccessful": usable}
    notes = [
        {"level": "error" if not report.usable else "warning",
         "message": {"text": report.problem or _not_judged(report)}}
        for report, _ in reports
        if report.verdict in ("not usable", "not judged")
    ]  # fmt: skip
    if notes:
        invocation["toolExecutionNotifications"] = notes
    driver = {"name": "attention.check", "rules": rules} | _linked("informationUri")
    run = {
        "tool": {"driver": driver},
        "results": results,
        "invocations": [invocation],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _linked(key: str, code: str = "") -> dict[str, Any]:
    where = address(code)
    return {key: where} if where else {}


def address(code: str = "") -> str:
    """Return where a code is on the page of all codes, if there is an address."""
    place = f"#{code.lower()}" if code else ""
    with contextlib.suppress(metadata.PackageNotFoundError):
        for entry in metadata.metadata("coding-attention").get_all("Project-URL") or ():
            name, _, site = entry.partition(", ")
            if name == "Homepage":
                return f"{site.rstrip('/')}/book/codes.html{place}"
    return ""


def _not_judged(report: Report) -> str:
    why = report.not_compared or "a test broke inside the checker"
    told = report.command or report.needed
    return f"{report.subject} was not judged: {why}. {told}".strip()


def _sarif_place(finding: Finding, target: str) -> dict[str, Any]:
    file, line = target.partition(":")[0], 1
    region: dict[str, Any] = {"startLine": line}
    if finding.place:
        file, line, text = finding.place
        region = {"startLine": line, "snippet": {"text": text}}
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": shown(file)},
            "region": region,
        }
    }


def as_github(reports: Reports) -> str:
    """Return workflow commands, which put findings beside the lines of a change."""
    return "\n".join(line for report in reports for line in _github(*report))


def _github(report: Report, target: str) -> list[str]:
    if not report.usable:
        title = _escaped(report.subject, more=True)
        return [f"::error title={title}::{_escaped(report.problem)}"]
    commands = {"error": "error", "warning": "warning", "note": "notice"}
    lines = []
    for finding in report.findings:
        file, line = target.partition(":")[0], 1
        if finding.place:
            file, line, _ = finding.place
        title = _escaped(f"{finding.code} {finding.title}", more=True)
        where = f"file={_escaped(shown(file), more=True)},line={line},title={title}"
        text = f"{finding.seen}\n{finding.means}\nLikely line: {finding.line}"
        lines.append(f"::{commands[finding.severity]} {where}::{_escaped(text)}")
    if report.verdict == "not judged":
        file = _escaped(shown(target.partition(":")[0]), more=True)
        where = f"file={file},line=1,title=Not judged"
        lines.append(f"::error {where}::{_escaped(_not_judged(report))}")
    return [*lines, report.headline()]


def _escaped(text: str, more: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if more else text


def as_junit(reports: Reports) -> str:
    """Return JUnit XML: a suite for each class, a test case for each test."""
    whole = ElementTree.Element("testsuites")
    suites = [_suite(report, place) for place, (report, _) in enumerate(reports)]
    whole.extend(suites)
    for name in ("tests", "failures", "errors"):
        whole.set(name, str(sum(int(suite.attrib[name]) for suite in suites)))
    return ElementTree.tostring(whole, encoding="unicode")


def _suite(report: Report, place: int) -> ElementTree.Element:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    given = {"name": "attention.check", "id": str(place), "package": report.subject,
             "timestamp": now, "hostname": platform.node() or "localhost",
             "time": "0"}  # fmt: skip
    suite = ElementTree.Element("testsuite", given)
    failures = errors = skipped = 0
    if report.verdict in ("not usable", "not judged"):
        case = ElementTree.SubElement(suite, "testcase", _case(report, report.verdict))
        message = report.problem or _not_judged(report)
        ElementTree.SubElement(case, "error", message=message, type=report.verdict)
        errors = 1
    by_name = {finding.mistake: finding for finding in report.findings}
    for result in report.results:
        case = ElementTree.SubElement(suite, "testcase", _case(report, result.test))
        if result.outcome == "not run":
            ElementTree.SubElement(case, "skipped", message=result.why)
            skipped += 1
        elif result.outcome == "broken":
            ElementTree.SubElement(case, "error", message=result.why, type="broken")
            errors += 1
        elif result.outcome == "failed":
            told = [by_name[name] for name in result.mistakes if name in by_name]
            told = [f for f in told if f.severity == "error" or report.strict]
            if told:
                title = "; ".join(f"{f.code} {f.title}" for f in told)
                kind = told[0].code
                failure = ElementTree.SubElement(
                    case, "failure", message=title, type=kind
                )
                failure.text = "\n".join(f"{f.seen} {f.means}" for f in told)
                failures += 1
    counts = {"tests": len(suite), "failures": failures, "errors": errors,
              "skipped": skipped}  # fmt: skip
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    return suite


def _case(report: Report, name: str) -> dict[str, str]:
    return {"classname": report.subject, "name": name, "time": "0"}


FORMATS = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
    "junit": as_junit,
}
