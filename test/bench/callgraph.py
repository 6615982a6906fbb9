"""callgraph.py: reads a callgrind output file into inclusive costs per caller and callee.

callgrind's own annotate gives one flat list; what an optimiser needs is where below one entry point the instructions
go. Edges are context-free, as callgrind keeps them: a callee shared by two callers shows what each of them spent in it.
"""
import re
from collections import defaultdict

NAME = re.compile(r'^c?fn=\((\d+)\)(?: (.*))?$')


class CallGraph:
    """CallGraph holds self costs and, per (caller, callee), the number of calls and their inclusive cost."""

    def __init__(self, path):
        self.own = defaultdict(int)
        self.edges = defaultdict(lambda: defaultdict(lambda: [0, 0]))
        self.names = {}
        with open(path) as file:
            self.read(file)

    def name(self, match):
        number, name = match.groups()
        if name:
            self.names[number] = name
        return self.names[number]

    def read(self, lines):
        function = callee = None
        calls = 0
        for line in lines:
            if line.startswith('fn='):
                function = self.name(NAME.match(line))
            elif line.startswith('cfn='):
                callee = self.name(NAME.match(line))
            elif line.startswith('calls='):
                calls = int(line[6:].split()[0])
            elif line[:1].isdigit() or line[:1] in '+-*':
                cost = int(line.split()[1])
                if callee is None:
                    self.own[function] += cost
                    continue
                edge = self.edges[function][callee]
                edge[0] += calls
                edge[1] += cost
                callee = None

    def inclusive(self, function):
        """inclusive returns a function's own cost and that of all it called."""
        return self.own[function] + sum(cost for _, cost in self.edges[function].values())

    def tree(self, root, calls, least, depth=12):
        """tree yields (level, name, calls, inclusive cost, own cost) below root, per call, dearest first."""
        yield from self.walk(root, 0, 1.0, self.inclusive(root) / calls, calls, least, depth, ())

    def walk(self, function, level, count, cost, calls, least, depth, above):
        total = self.inclusive(function) or 1
        share = cost * calls / total
        yield level, function, count, cost, self.own[function] / calls * share
        if level == depth or function in above:
            return
        children = sorted(self.edges[function].items(), key=lambda item: -item[1][1])
        for callee, (number, below) in children:
            if below / calls * share >= least:
                yield from self.walk(callee, level + 1, number / calls * share, below / calls * share, calls, least,
                                     depth, above + (function,))
