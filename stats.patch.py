p='/tmp/soakmut/tests/ledger/test_ledger_machine.py'
s=open(p).read()
s=s.replace('''        finally:
            for worker in self.workers:
                worker.close()''','''        finally:
            from collections import Counter
            kinds = Counter(e.kind for r in self.wanted for e in runs.events(self.conn, r))
            print("STAT", len(self.wanted), len(self.provider.acts), dict(kinds), [w.deaths for w in self.workers], self.provider.used)
            for worker in self.workers:
                worker.close()''')
open(p,'w').write(s)
p='/tmp/soakmut/tests/support/mortal.py'
s=open(p).read()
s=s.replace("        self._died = True\n","        self._died = True\n        self.deaths += 1\n").replace("        self._left = 0\n","        self._left = 0\n        self.deaths = 0\n",1)
open(p,'w').write(s)
p='/tmp/soakmut/tests/support/faulty.py'
s=open(p).read()
s=s.replace("            fault = self._fault(\"look-up fails\")\n","            fault = self._fault(\"look-up fails\")\n            self.used.append(fault)\n").replace("        self._busy: set","        self.used = []\n        self._busy: set")
open(p,'w').write(s)
