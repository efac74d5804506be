package mutate
import ("testing";"os";"encoding/json";"fmt";"github.com/runfence/runfence/machine/patch")
func TestZZ(t *testing.T){ ks,err:=killers(); if err!=nil{t.Fatal(err)}
 var l []string; b,_:=os.ReadFile(os.Getenv("LIST")); json.Unmarshal(b,&l)
 c:=Campaign{Rules:Ours(),Killers:ks[:1]}
 for _,s:=range l {p,err:=patch.Parse(s); if err!=nil{t.Fatal(err)}; c.Mutants=append(c.Mutants,p)}
 out,err:=c.Run(t.Context()); if err!=nil{t.Fatal(err)}
 n:=0; for _,o:=range out { if o.Fate==Hole {n++; fmt.Println(o.ID)}}; fmt.Println(n,"of",len(out))}
