"""Ministack, started with what its Athena lacks and this sink is made of; run by ministack's own Python.

Views: `CREATE OR REPLACE VIEW` is kept in Glue as Athena keeps it, and a query's views are put in as subqueries
before the engine looks tables up. Partition projection: only the files under projected values are read.
Results: each value that there is in quotes, NULL bare, under the name that the execution tells.
"""

import base64
import json
import re
import sys
from urllib.parse import urlparse

from ministack.app import main
from ministack.services import athena, glue, s3

CREATE_VIEW = re.compile(r'\s*CREATE\s+OR\s+REPLACE\s+VIEW\s+"([a-z0-9_]+)"\s+AS\s+(SELECT\b.*)', re.DOTALL)
MARK, END = "/* Presto View: ", " */"


class View:
    def __init__(self, name, body):
        self.name, self.body = name, body


def parse_ddl(query, otherwise=athena._parse_ddl):
    found = CREATE_VIEW.fullmatch(query)
    return View(*found.groups()) if found else otherwise(query)


def run_ddl(ddl, database, otherwise=athena._run_ddl):
    if not isinstance(ddl, View):
        return otherwise(ddl, database)
    for reference in athena._table_references(ddl.body):
        if f"{database}/{reference.table}" not in glue._tables:
            raise ValueError(f"TABLE_NOT_FOUND: Table 'awsdatacatalog.{database}.{reference.table}' does not exist")
    definition = {"originalSql": ddl.body, "catalog": "awsdatacatalog", "schema": database}
    table = {
        "Name": ddl.name,
        "TableType": "VIRTUAL_VIEW",
        "Parameters": {"comment": "Presto View", "presto_view": "true"},
        "ViewOriginalText": MARK + base64.b64encode(json.dumps(definition).encode()).decode() + END,
    }
    asked = {"DatabaseName": database, "TableInput": table}
    there = glue._tables.get(f"{database}/{ddl.name}")
    if there is not None and there["TableType"] != "VIRTUAL_VIEW":
        raise ValueError(f"Table '{ddl.name}' is not a view")
    (glue._create_table if there is None else glue._update_table)(asked)
    return {"columns": [], "rows": [], "column_types": []}


def with_views_put_in(query, database):
    edits = []
    for reference in athena._table_references(query):
        table = glue._tables.get(f"{reference.database or database}/{reference.table}")
        if table and table["TableType"] == "VIRTUAL_VIEW":
            text = table["ViewOriginalText"].removeprefix(MARK).removesuffix(END)
            body = json.loads(base64.b64decode(text))["originalSql"]
            name = "" if reference.aliased else f' AS "{reference.table}"'
            edits.append((reference.start, reference.end, f"({with_views_put_in(body, database)}){name}"))
    for start, end, text in reversed(edits):
        query = query[:start] + text + query[end:]
    return query


async def rewrite(query, database, catalog=None, otherwise=athena._rewrite_data_paths):
    return await otherwise(with_views_put_in(query, database), database, catalog)


def table_relation(table, files, otherwise=athena._table_relation):
    parameters = table.get("Parameters") or {}
    if parameters.get("projection.enabled") == "true":
        (key,) = (partition["Name"] for partition in table["PartitionKeys"])
        values = parameters[f"projection.{key}.values"].split(",")
        files = [file for file in files if any(f"/{key}={value}/" in file for value in values)]
    return otherwise(table, files) if files else athena._empty_relation(table)


async def save_results(query_id):
    execution = athena._executions[query_id]
    found = execution["_results"]

    def text(value):
        return "" if value is None else '"' + athena._datum_text(value).replace('"', '""') + '"'

    lines = [",".join(text(value) for value in row) for row in (found["columns"], *found["rows"])]
    place = urlparse(execution["ResultConfiguration"]["OutputLocation"])
    data = ("\n".join(lines) + "\n").encode()
    for name, body in ((place.path, data), (place.path + ".metadata", b"")):
        answer = s3._put_object(place.netloc, name.lstrip("/"), body, {"content-length": str(len(body))})
        if answer[0] >= 300:
            execution["Status"].update(State="FAILED", StateChangeReason="Access denied when writing output location")


athena._parse_ddl = parse_ddl
athena._run_ddl = run_ddl
athena._rewrite_data_paths = rewrite
athena._table_relation = table_relation
athena._save_query_results = save_results

if __name__ == "__main__":
    sys.exit(main())
